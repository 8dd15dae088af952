//! Cuts a watch's body into its JSON objects by their braces, so that one printed over many lines is one (case B04). Knows no
//! HTTP and does not decode.

/// The largest object that is put together, bytes: etcd keeps none above 1.5 MiB, and escaping may double it.
pub const OBJECT_BYTES: usize = 4 << 20;

/// The body so far.
#[derive(Debug, Default)]
pub struct Frames {
    bytes: Vec<u8>,
    /// How many of them were looked at.
    looked: usize,
    depth: u32,
    in_string: bool,
    escaped: bool,
}

/// The body is not what a watch sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadFrame {
    /// An object passed [`OBJECT_BYTES`].
    #[error("an object of more than {OBJECT_BYTES} bytes")]
    TooLarge,
    /// Something stands between the objects.
    #[error("text between the objects")]
    Garbage,
}

impl Frames {
    /// Takes what came, and gives the objects that it completed.
    ///
    /// # Errors
    /// When the body cannot be cut any further; what is left of it means nothing.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, BadFrame> {
        self.bytes.extend_from_slice(bytes);
        let mut whole = Vec::new();
        let mut begin = 0;
        while let Some(&byte) = self.bytes.get(self.looked) {
            self.looked += 1;
            if self.step(byte)? {
                whole.push(self.bytes[begin..self.looked].trim_ascii().to_vec());
                begin = self.looked;
            } else if self.depth == 0 {
                begin = self.looked;
            }
        }
        self.bytes.drain(..begin);
        self.looked -= begin;
        if self.bytes.len() > OBJECT_BYTES { Err(BadFrame::TooLarge) } else { Ok(whole) }
    }

    /// Takes a byte; whether it ends an object.
    fn step(&mut self, byte: u8) -> Result<bool, BadFrame> {
        if self.in_string {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            return Ok(false);
        }
        match byte {
            b'{' => self.depth += 1,
            b'}' if self.depth > 0 => {
                self.depth -= 1;
                return Ok(self.depth == 0);
            }
            b'"' if self.depth > 0 => self.in_string = true,
            _ if self.depth > 0 || byte.is_ascii_whitespace() => {}
            _ => return Err(BadFrame::Garbage),
        }
        Ok(false)
    }

    /// Whether an object was begun and not completed: the body was cut.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.depth > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(chunks: &[&str]) -> Result<Vec<String>, BadFrame> {
        let mut frames = Frames::default();
        let mut out = Vec::new();
        for chunk in chunks {
            out.extend(frames.push(chunk.as_bytes())?.into_iter().map(|object| String::from_utf8(object).expect("text")));
        }
        Ok(out)
    }

    #[test]
    fn b04_an_object_over_many_lines_is_one() {
        let indented = "{\n  \"kind\": \"Status\",\n  \"code\": 429,\n  \"details\": {\n    \"retryAfterSeconds\": 5\n  }\n}\n";
        assert_eq!(all(&[indented]).expect("cut"), [indented.trim()]);
        assert_eq!(all(&["{\"a\":1}\n{\"b\":2}\r\n\n", "{}"]).expect("cut"), ["{\"a\":1}", "{\"b\":2}", "{}"]);
    }

    #[test]
    fn cuts_are_found_wherever_the_body_is_split() {
        let body = r#"{"a":"}{\"\\"}{"b":["{",{"c":"\\"}]}"#;
        for at in 0..body.len() {
            assert_eq!(all(&[&body[..at], &body[at..]]).expect("cut"), [&body[..14], &body[14..]], "{at}");
        }
    }

    #[test]
    fn what_is_no_object_is_refused() {
        for evil in ["upstream error", "{}x", "[{}]", "\"a\"", "}"] {
            assert_eq!(all(&[evil]), Err(BadFrame::Garbage), "{evil}");
        }
        let mut frames = Frames::default();
        assert_eq!(frames.push(b"{\"a\":\"").expect("begun"), Vec::<Vec<u8>>::new());
        assert!(frames.is_cut());
        assert_eq!(frames.push(&vec![b'x'; OBJECT_BYTES]), Err(BadFrame::TooLarge));
    }
}
