//! The keys of a data folder: made once, readable by the daemon alone, never in a backup.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use crate::clock::Entropy;

/// The file in the data folder.
const FILE: &str = "environment.key";

/// The key under which environments are compared; made at the first start.
///
/// # Errors
/// When it cannot be read or made, or is not 32 bytes long.
pub fn digest_key(data_dir: &Path, entropy: &Entropy) -> io::Result<[u8; 32]> {
    let path = data_dir.join(FILE);
    match fs::read(&path) {
        Ok(bytes) => bytes.try_into().map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "environment.key is not 32 bytes long")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let key = entropy.bytes();
            replace(data_dir, FILE, &key)?;
            Ok(key)
        }
        Err(error) => Err(error),
    }
}

/// Puts a file of the data folder in the place of what was there, whole or not at all, readable by the daemon alone.
pub(super) fn replace(data_dir: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let partial = data_dir.join(format!("{name}.partial"));
    let mut file = File::options().create(true).truncate(true).write(true).mode(0o600).open(&partial)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&partial, data_dir.join(name))?;
    File::open(data_dir)?.sync_all()
}
