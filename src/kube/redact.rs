//! Takes the values of an environment out of a text. Pure; time and memory grow with text and values, never with their product.
//!
//! All values are sought at once (an automaton after Aho and Corasick). What is covered by any of them, however they overlap,
//! becomes the name of the longest. Lines of values of several lines are sought too: a tail may begin within such a value.

use super::environment::Environment;

/// Shorter values are words like `true` or `8080`: replacing them hides nothing and spoils every text.
pub const VALUE_BYTES: usize = 8;

/// How much of a value must stand at a cut end of the text to be taken for a part of it.
const PART_BYTES: usize = 4;

/// The most bytes of values that are sought: an environment's file holds no more.
const NEEDLES_BYTES: usize = 2 << 20;

/// Seeks the values of one environment.
pub struct Redactor {
    names: Vec<String>,
    forward: Automaton,
    backward: Automaton,
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Redactor").field("names", &self.names).finish_non_exhaustive()
    }
}

/// Whether the text's ends were cut by somebody: then a part of a value there is taken out as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cut {
    /// Something may be missing before the text.
    pub begin: bool,
    /// Something may be missing after it.
    pub end: bool,
}

impl Redactor {
    /// Seeks every value of at least [`VALUE_BYTES`], and every such line of a value.
    #[must_use]
    pub fn new(environment: &Environment) -> Self {
        let mut redactor = Self { names: Vec::new(), forward: Automaton::default(), backward: Automaton::default() };
        let mut room = NEEDLES_BYTES;
        for (name, value) in environment.iter() {
            let number = u32::try_from(redactor.names.len()).unwrap_or(u32::MAX);
            redactor.names.push(name.to_owned());
            let lines = value.split('\n').map(|line| line.trim_end_matches('\r')).filter(|line| *line != value);
            for needle in std::iter::once(value).chain(lines).filter(|needle| needle.len() >= VALUE_BYTES) {
                let Some(left) = room.checked_sub(needle.len()) else { break };
                room = left;
                redactor.forward.add(needle.bytes(), number);
                redactor.backward.add(needle.bytes().rev(), number);
            }
        }
        redactor.forward.link();
        redactor.backward.link();
        redactor
    }

    /// What it takes in memory, bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        (self.forward.nodes.capacity() + self.backward.nodes.capacity()) * size_of::<Node>()
    }

    /// The text with `[NAME]` in place of every value.
    #[must_use]
    pub fn redact(&self, text: &str, cut: Cut) -> String {
        // A cut within a character left something that cannot be decoded: what stands beside it counts as the end.
        let cut_off = |side: bool, trimmed: &str| if side { text.len() - trimmed.len() } else { 0 };
        let begin = cut_off(cut.begin, text.trim_start_matches('\u{fffd}'));
        let end = text.len() - cut_off(cut.end, text.trim_end_matches('\u{fffd}')).min(text.len() - begin);
        [&text[..begin], &self.replaced(&text[begin..end], cut), &text[end..]].concat()
    }

    fn replaced(&self, text: &str, cut: Cut) -> String {
        let mut out = String::with_capacity(text.len());
        let mut done = 0;
        for hit in self.hits(text, cut) {
            out.push_str(text.get(done..hit.begin).unwrap_or(""));
            out.push('[');
            out.push_str(self.names.get(hit.name as usize).map_or("", String::as_str));
            out.push(']');
            done = hit.end;
        }
        out.push_str(text.get(done..).unwrap_or(""));
        out
    }

    /// What is to be replaced: apart from each other, in order, between characters.
    fn hits(&self, text: &str, cut: Cut) -> Vec<Hit> {
        let mut found: Vec<Hit> = Vec::new();
        let last = self.forward.run(text.bytes(), |end, length, name| {
            merge(&mut found, Hit { begin: end - length, end, longest: length, name });
        });
        let (length, name) = self.forward.depth(last);
        if cut.end && length >= PART_BYTES {
            merge(&mut found, Hit { begin: text.floor_char_boundary(text.len() - length), end: text.len(), longest: length, name });
        }
        if cut.begin {
            let (length, name) = self.backward.depth(self.backward.run(text.bytes().rev(), |_, _, _| {}));
            if length >= PART_BYTES {
                let mut all = vec![Hit { begin: 0, end: text.ceil_char_boundary(length), longest: length, name }];
                found.into_iter().for_each(|hit| merge(&mut all, hit));
                return all;
            }
        }
        found
    }
}

/// Adds a hit to those before it, which are apart and in order; what it overlaps becomes one with it.
fn merge(hits: &mut Vec<Hit>, mut hit: Hit) {
    while let Some(last) = hits.pop_if(|last| last.end > hit.begin) {
        hit.begin = hit.begin.min(last.begin);
        hit.end = hit.end.max(last.end);
        if last.longest > hit.longest {
            (hit.longest, hit.name) = (last.longest, last.name);
        }
    }
    hits.push(hit);
}

#[derive(Debug, Clone, Copy)]
struct Hit {
    begin: usize,
    end: usize,
    longest: usize,
    name: u32,
}

/// A node of the automaton: siblings are a list, so that a node costs 28 bytes whatever it has below.
#[derive(Debug, Clone, Copy, Default)]
struct Node {
    byte: u8,
    child: u32,
    sibling: u32,
    fail: u32,
    depth: u32,
    /// The longest value that ends here, 0 when none does.
    found: u32,
    name: u32,
}

#[derive(Debug)]
struct Automaton {
    nodes: Vec<Node>,
}

impl Default for Automaton {
    fn default() -> Self {
        Self { nodes: vec![Node::default()] }
    }
}

const ROOT: u32 = 0;

impl Automaton {
    fn node(&self, at: u32) -> Node {
        self.nodes[at as usize]
    }

    fn below(&self, at: u32, byte: u8) -> Option<u32> {
        let mut next = self.node(at).child;
        while next != ROOT {
            let node = self.node(next);
            if node.byte == byte {
                return Some(next);
            }
            next = node.sibling;
        }
        None
    }

    fn add(&mut self, needle: impl Iterator<Item = u8>, name: u32) {
        let mut at = ROOT;
        for byte in needle {
            at = self.below(at, byte).unwrap_or_else(|| {
                let new = u32::try_from(self.nodes.len()).expect("values are bounded by NEEDLES_BYTES");
                let parent = self.node(at);
                self.nodes.push(Node { byte, sibling: parent.child, depth: parent.depth + 1, name, ..Node::default() });
                self.nodes[at as usize].child = new;
                new
            });
        }
        let depth = self.node(at).depth;
        let node = &mut self.nodes[at as usize];
        (node.found, node.name) = (depth, name);
    }

    /// Links each node to the longest other beginning that its own end is: breadth first, so that what it links to is linked.
    fn link(&mut self) {
        let mut queue = std::collections::VecDeque::from([ROOT]);
        while let Some(at) = queue.pop_front() {
            let mut child = self.node(at).child;
            while child != ROOT {
                let node = self.node(child);
                let fail = if at == ROOT { ROOT } else { self.next(self.node(at).fail, node.byte) };
                let target = self.node(fail);
                let linked = &mut self.nodes[child as usize];
                linked.fail = fail;
                if linked.found == 0 && target.found > 0 {
                    (linked.found, linked.name) = (target.found, target.name);
                }
                queue.push_back(child);
                child = node.sibling;
            }
        }
    }

    fn next(&self, mut at: u32, byte: u8) -> u32 {
        loop {
            match self.below(at, byte) {
                Some(next) => return next,
                None if at == ROOT => return ROOT,
                None => at = self.node(at).fail,
            }
        }
    }

    /// Reads a text; tells of the longest value that ends at each place (end, length, name); gives the last node.
    fn run(&self, text: impl Iterator<Item = u8>, mut found: impl FnMut(usize, usize, u32)) -> u32 {
        let mut at = ROOT;
        for (index, byte) in text.enumerate() {
            at = self.next(at, byte);
            let node = self.node(at);
            if node.found > 0 {
                found(index + 1, node.found as usize, node.name);
            }
        }
        at
    }

    fn depth(&self, at: u32) -> (usize, u32) {
        let node = self.node(at);
        (node.depth as usize, node.name)
    }
}
