//! Where the API server gets a container's output from. The node implements it, and its kubelet endpoint serves it.

/// What a node says to a request for a container's output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogRead {
    /// The output so far.
    Text(String),
    /// The container has not started: the kubelet answers 400 with the waiting reason.
    Waiting(String),
    /// There is no former container.
    NoPrevious,
    /// The node does not answer.
    Unreachable,
}

impl LogRead {
    /// Why a kubelet refuses to read this, answered with 400; `None` when it does not.
    #[must_use]
    pub fn refusal(&self, pod: &str, container: &str) -> Option<String> {
        match self {
            Self::Waiting(reason) => Some(format!("container {container:?} in pod {pod:?} is waiting to start: {reason}")),
            Self::NoPrevious => Some(format!("previous terminated container {container:?} in pod {pod:?} not found")),
            Self::Text(_) | Self::Unreachable => None,
        }
    }
}

/// Which container's output.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogKey {
    /// The pod's namespace.
    pub namespace: String,
    /// The pod's name.
    pub pod: String,
    /// The pod's uid.
    pub uid: String,
    /// The container's name.
    pub container: String,
}

/// A source of output.
pub trait LogSource: Send + Sync {
    /// The output of a container, or of its former life.
    fn read(&self, key: &LogKey, previous: bool) -> LogRead;
}

/// The last `lines` lines of a text, then its first `bytes` bytes: the order in which a kubelet applies the limits.
#[must_use]
pub fn cut(text: &str, lines: Option<usize>, bytes: Option<usize>) -> String {
    let mut text = match lines {
        Some(lines) => {
            let all: Vec<&str> = text.split_inclusive('\n').collect();
            all.get(all.len().saturating_sub(lines)..).unwrap_or_default().concat()
        }
        None => text.to_owned(),
    };
    if let Some(bytes) = bytes {
        let mut end = bytes.min(text.len());
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
    }
    text
}
