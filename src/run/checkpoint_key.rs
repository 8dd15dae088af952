//! The key that checkpoints are signed with: made at the first start, readable by the daemon alone, never in a backup.
//!
//! It is kept as the text of a signed note's private key, which other tools read too and whose id shows a changed byte. A key that
//! cannot be read is never replaced: whoever holds its public half would take the new one for a forger's.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use super::keys;
use crate::clock::Entropy;
use crate::proof::key::{BadKey, SigningKey};

/// The file in the data folder.
pub const FILE: &str = "checkpoint.key";

/// No key's text is longer, bytes.
const MOST: u64 = 1_024;

/// The key of a data folder; made under that name when there is none.
///
/// # Errors
/// When it cannot be read or made, or is damaged.
pub fn open(data_dir: &Path, name: &str, entropy: &Entropy) -> io::Result<SigningKey> {
    match read(data_dir)? {
        Some(key) => Ok(key),
        None => {
            let key = SigningKey::new(name, entropy.bytes()).map_err(io::Error::other)?;
            keys::replace(data_dir, FILE, format!("{}\n", key.secret_text()).as_bytes())?;
            Ok(key)
        }
    }
}

/// The key of a data folder, when there is one.
///
/// # Errors
/// When it cannot be read, or is damaged.
pub fn read(data_dir: &Path) -> io::Result<Option<SigningKey>> {
    let file = match File::open(data_dir.join(FILE)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let mut text = String::new();
    file.take(MOST).read_to_string(&mut text)?;
    SigningKey::parse(text.trim_end_matches('\n')).map(Some).map_err(damaged)
}

fn damaged(why: BadKey) -> io::Error {
    let what = format!(
        "it is damaged ({why}); put it back from where it is kept, or move it away: the next start makes a new one, which every auditor has to be told of"
    );
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn it_is_made_once_kept_private_and_never_replaced() {
        let dir = tempfile::tempdir().expect("a folder");
        let open = |name: &str| open(dir.path(), name, &Entropy::os()).map(|key| key.verifier().to_string());
        let first = open("wharfinger/prod/prod").expect("made");
        assert_eq!(open("wharfinger/prod/renamed").expect("read"), first, "key and name stay");
        let path = dir.path().join(FILE);
        assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
        let text = fs::read_to_string(&path).expect("text");
        for damage in [text.replace("prod", "prot"), text[..text.len() - 9].to_owned(), String::new(), "\u{0}".repeat(2_000)] {
            fs::write(&path, &damage).expect("written");
            let error = open("wharfinger/prod/prod").expect_err("damaged");
            assert!(error.kind() == io::ErrorKind::InvalidData && error.to_string().contains("damaged"), "{error}");
            assert_eq!(fs::read_to_string(&path).expect("text"), damage, "it is left as it is");
        }
        fs::remove_file(&path).expect("removed");
        assert_ne!(open("wharfinger/prod/prod").expect("made"), first);
    }
}
