//! The keys of a data folder: made once, readable by the daemon alone, never in a backup.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use crate::clock::Entropy;

/// The key under which environments are compared; made at the first start.
///
/// # Errors
/// When it cannot be read or made, or is not 32 bytes long.
pub fn digest_key(data_dir: &Path, entropy: &Entropy) -> io::Result<[u8; 32]> {
    let path = data_dir.join("environment.key");
    match fs::read(&path) {
        Ok(bytes) => bytes.try_into().map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "environment.key is not 32 bytes long")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let key = entropy.bytes();
            let partial = data_dir.join("environment.key.partial");
            let mut file = File::options().create(true).truncate(true).write(true).mode(0o600).open(&partial)?;
            file.write_all(&key)?;
            file.sync_all()?;
            fs::rename(&partial, &path)?;
            File::open(data_dir)?.sync_all()?;
            Ok(key)
        }
        Err(error) => Err(error),
    }
}
