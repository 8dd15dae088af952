//! Where a measurement writes: a folder on a real disk, because a memory file system says nothing about one.

use std::path::{Path, PathBuf};

use crate::cli::error::CliError;
use crate::clock::Entropy;
use crate::ids::hex;

/// File systems that lose everything with the power: syncing to them costs nothing and means nothing.
const IN_MEMORY: &[&str] = &["tmpfs", "ramfs", "devtmpfs", "hugetlbfs"];

/// A folder to measure in; a temporary one is removed when this is dropped.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) dir: PathBuf,
    /// Its file system, as the mount table names it; empty when it is not told.
    pub(super) file_system: String,
    temporary: bool,
}

impl Place {
    /// The named folder, which has to be new or empty, or a new temporary one.
    ///
    /// # Errors
    /// When it is in use, cannot be made, or lies in memory.
    pub(super) fn new(named: Option<&Path>) -> Result<Self, CliError> {
        let temporary = || std::env::temp_dir().join(format!("wharf-bench-{}", hex(&Entropy::os().bytes::<4>())));
        let dir = named.map_or_else(temporary, Path::to_path_buf);
        let name = dir.display().to_string();
        if std::fs::read_dir(&dir).is_ok_and(|mut entries| entries.next().is_some()) {
            return Err(CliError::input(format!("--dir {name}: it is not empty"), "name a new folder"));
        }
        std::fs::create_dir_all(&dir).map_err(|error| CliError::refused(format!("--dir {name}: {error}"), "").because(error))?;
        let mut place = Self { dir, file_system: String::new(), temporary: named.is_none() };
        let whole = std::fs::canonicalize(&place.dir)?;
        place.file_system = std::fs::read_to_string("/proc/self/mounts").ok().and_then(|mounts| of(&mounts, &whole)).unwrap_or_default();
        if IN_MEMORY.contains(&place.file_system.as_str()) {
            let what = format!("{} lies in memory ({}): its syncs cost nothing", whole.display(), place.file_system);
            return Err(CliError::input(what, "name a folder on the disk to measure with --dir"));
        }
        Ok(place)
    }

    /// A folder on whatever there is, for what does not measure.
    #[cfg(test)]
    pub(super) fn unchecked(dir: &Path) -> Self {
        Self { dir: dir.to_path_buf(), file_system: String::new(), temporary: false }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.temporary {
            // What stays behind is in the system's temporary folder.
            let _ = std::fs::remove_dir_all(&self.dir);
        }
    }
}

/// The type of the file system that a path lies on, by a mount table: the longest mount point, of equal ones the last.
fn of(mounts: &str, path: &Path) -> Option<String> {
    let fields = mounts.lines().map(|line| line.split(' '));
    let points = fields.filter_map(|mut fields| Some((unescaped(fields.nth(1)?), fields.next()?)));
    let below = points.filter(|(point, _)| path.starts_with(point));
    below.max_by_key(|(point, _)| point.len()).map(|(_, kind)| kind.to_owned())
}

/// The table writes a space as `\040`; other escapes do not occur in sensible mount points.
fn unescaped(point: &str) -> String {
    point.replace("\\040", " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str =
        "/dev/vda / ext4 rw 0 0\ntmpfs /tmp tmpfs rw 0 0\n/dev/vdb /srv/my\\040data xfs rw 0 0\n/dev/vdc /tmp ext4 rw 0 0\n";

    #[test]
    fn the_longest_and_last_mount_point_counts() {
        let kind = |path: &str| of(MOUNTS, Path::new(path)).expect("mounted");
        assert_eq!(kind("/var/lib"), "ext4");
        assert_eq!(kind("/srv/my data/x"), "xfs");
        assert_eq!(kind("/tmp/x"), "ext4");
        assert_eq!(kind("/tmpx"), "ext4");
    }

    #[test]
    fn a_folder_in_memory_and_a_used_one_are_refused() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::write(folder.path().join("x"), "").expect("written");
        assert!(Place::new(Some(folder.path())).is_err());
        let memory = Path::new("/dev/shm");
        if std::fs::read_to_string("/proc/self/mounts").is_ok_and(|mounts| of(&mounts, memory).is_some_and(|kind| kind == "tmpfs")) {
            let dir = memory.join(format!("wharf-bench-test-{}", std::process::id()));
            let refused = Place::new(Some(&dir)).map(|place| place.file_system.clone());
            std::fs::remove_dir(&dir).expect("removed");
            assert!(refused.is_err_and(|error| error.line().contains("tmpfs")));
        }
    }
}
