//! Records what this process tells the kernel about files below one folder, in order. Knows nothing of logs.
//!
//! The functions below carry libc's names, so that every call of the standard library and of sled goes through them: the
//! executable's symbols win over the shared library's. Until [`start`] is called they only pass on, but for what
//! tests/it/support/faults.rs refuses. Not seen are io_uring,
//! memory maps and duplicated descriptors; nothing here uses them, and a test compares what was recorded with what is there.

#![expect(unsafe_code, reason = "taking the place of libc's functions is a matter of raw symbols and pointers")]

use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::os::fd::IntoRawFd as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use libc::{off_t, off64_t, size_t, ssize_t};

use crate::support::faults::{self, Call};

/// What a recorded call did: the first byte of its entry.
pub(super) mod op {
    pub(in super::super) const OPEN: u8 = 1;
    pub(in super::super) const WRITE: u8 = 2;
    pub(in super::super) const TRUNCATE: u8 = 3;
    pub(in super::super) const SYNC: u8 = 4;
    pub(in super::super) const RENAME: u8 = 5;
    pub(in super::super) const UNLINK: u8 = 6;
    pub(in super::super) const MKDIR: u8 = 7;
    pub(in super::super) const ACKNOWLEDGED: u8 = 8;
}

struct Recording {
    log: c_int,
    root: String,
    /// Open descriptors below the root.
    paths: BTreeMap<c_int, String>,
}

static ON: AtomicBool = AtomicBool::new(false);
static RECORDING: Mutex<Option<Recording>> = Mutex::new(None);

/// Records everything below `root` into the file `log` from now on.
pub(super) fn start(root: &Path, log: &Path) {
    let log = std::fs::File::create(log).expect("the recording can be made").into_raw_fd();
    let root = root.to_str().expect("a path of text").to_owned();
    *recording() = Some(Recording { log, root, paths: BTreeMap::new() });
    ON.store(true, Ordering::SeqCst);
}

/// Notes that something was acknowledged at this point.
pub(super) fn acknowledged(what: &[u8]) {
    if let Some(recording) = recording().as_ref() {
        recording.entry(op::ACKNOWLEDGED, "", 0, what);
    }
}

fn recording() -> MutexGuard<'static, Option<Recording>> {
    RECORDING.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Recording {
    fn entry(&self, op: u8, path: &str, number: u64, data: &[u8]) {
        let mut entry = vec![op];
        entry.extend_from_slice(&number.to_le_bytes());
        for part in [path.as_bytes(), data] {
            entry.extend_from_slice(&(part.len() as u64).to_le_bytes());
            entry.extend_from_slice(part);
        }
        // SAFETY: the descriptor is ours and the bytes live until the call returns; the raw call does not come back here.
        let written = unsafe { libc::syscall(libc::SYS_write, self.log, entry.as_ptr(), entry.len()) };
        assert_eq!(usize::try_from(written), Ok(entry.len()), "the recording is written");
    }

    fn below(&self, path: &str) -> Option<String> {
        path.strip_prefix(&self.root).map(|rest| rest.trim_start_matches('/').to_owned())
    }
}

/// Runs `call`, and then `then` when it succeeded and is recorded; nothing else is recorded between the two.
fn record<T: Into<i64> + Copy>(call: impl FnOnce() -> T, then: impl FnOnce(&mut Recording, T)) -> T {
    if !ON.load(Ordering::SeqCst) {
        return call();
    }
    let mut recording = recording();
    let result = call();
    if let (Some(recording), true) = (recording.as_mut(), result.into() >= 0) {
        then(recording, result);
    }
    result
}

/// The address of the function of that name which libc would have called.
fn find(name: &CStr, found: &AtomicUsize) -> usize {
    if found.load(Ordering::Relaxed) == 0 {
        // SAFETY: the name is a C string.
        found.store(unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) } as usize, Ordering::Relaxed);
    }
    found.load(Ordering::Relaxed)
}

/// That function; the caller knows its signature, and says `unsafe`.
macro_rules! real {
    ($name:literal as $signature:ty) => {{
        static FOUND: AtomicUsize = AtomicUsize::new(0);
        std::mem::transmute::<usize, $signature>(find($name, &FOUND))
    }};
}

/// # Safety
/// `path` must be a C string, as for libc's functions of all the names below.
unsafe fn text(path: *const c_char) -> String {
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(path) }.to_string_lossy().into_owned()
}

/// Whether the call is refused; then the error number is set.
fn refused(fd: c_int, call: Call) -> bool {
    let error = faults::refused(fd, call);
    if let Some(error) = error {
        // SAFETY: the address is this thread's own number.
        unsafe { *libc::__errno_location() = error };
    }
    error.is_some()
}

type Open = unsafe extern "C" fn(*const c_char, c_int, c_uint) -> c_int;
type Named = unsafe extern "C" fn(*const c_char) -> c_int;
type Synced = unsafe extern "C" fn(c_int) -> c_int;

unsafe fn open_with(real: Open, path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
    // SAFETY: the arguments are passed on as they came.
    record(
        || unsafe { real(path, flags, mode) },
        |recording, fd| {
            // SAFETY: the call succeeded, so it is a C string.
            if let Some(path) = recording.below(&unsafe { text(path) }) {
                let makes = u64::from(flags & libc::O_CREAT != 0) | u64::from(flags & libc::O_TRUNC != 0) << 1;
                recording.entry(op::OPEN, &path, makes, &[]);
                recording.paths.insert(fd, path);
            }
        },
    )
}

#[unsafe(no_mangle)]
unsafe extern "C" fn open(path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
    // SAFETY: as libc's own.
    unsafe { open_with(real!(c"open" as Open), path, flags, mode) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn open64(path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
    // SAFETY: as libc's own.
    unsafe { open_with(real!(c"open64" as Open), path, flags, mode) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn close(fd: c_int) -> c_int {
    // SAFETY: as libc's own.
    record(|| unsafe { real!(c"close" as Synced)(fd) }, |recording, _| drop(recording.paths.remove(&fd)))
}

fn wrote(recording: &Recording, fd: c_int, at: off64_t, bytes: *const c_void, count: ssize_t) {
    if let Some(path) = recording.paths.get(&fd) {
        // SAFETY: the call wrote `count` bytes from there.
        let bytes = unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), count.unsigned_abs()) };
        recording.entry(op::WRITE, path, at.unsigned_abs(), bytes);
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn write(fd: c_int, bytes: *const c_void, count: size_t) -> ssize_t {
    type Write = unsafe extern "C" fn(c_int, *const c_void, size_t) -> ssize_t;
    // SAFETY: asking for the position changes nothing.
    if refused(fd, Call::Write(unsafe { libc::lseek64(fd, 0, libc::SEEK_CUR) }.unsigned_abs() + count as u64)) {
        return -1;
    }
    // SAFETY: as libc's own.
    let call = || unsafe { real!(c"write" as Write)(fd, bytes, count) } as i64;
    let done = record(call, |recording, count| {
        // SAFETY: asking for the position changes nothing.
        let end = unsafe { libc::lseek64(fd, 0, libc::SEEK_CUR) };
        wrote(recording, fd, end - count, bytes, count as ssize_t);
    });
    done as ssize_t
}

unsafe fn pwrite_with(
    real: unsafe extern "C" fn(c_int, *const c_void, size_t, off64_t) -> ssize_t,
    fd: c_int,
    bytes: *const c_void,
    count: size_t,
    at: off64_t,
) -> ssize_t {
    if refused(fd, Call::Write(at.unsigned_abs() + count as u64)) {
        return -1;
    }
    // SAFETY: the arguments are passed on as they came.
    let call = || unsafe { real(fd, bytes, count, at) } as i64;
    record(call, |recording, count| wrote(recording, fd, at, bytes, count as ssize_t)) as ssize_t
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pwrite(fd: c_int, bytes: *const c_void, count: size_t, at: off_t) -> ssize_t {
    type Pwrite = unsafe extern "C" fn(c_int, *const c_void, size_t, off64_t) -> ssize_t;
    // SAFETY: as libc's own.
    unsafe { pwrite_with(real!(c"pwrite" as Pwrite), fd, bytes, count, at) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pwrite64(fd: c_int, bytes: *const c_void, count: size_t, at: off64_t) -> ssize_t {
    type Pwrite = unsafe extern "C" fn(c_int, *const c_void, size_t, off64_t) -> ssize_t;
    // SAFETY: as libc's own.
    unsafe { pwrite_with(real!(c"pwrite64" as Pwrite), fd, bytes, count, at) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ftruncate64(fd: c_int, length: off64_t) -> c_int {
    type Truncate = unsafe extern "C" fn(c_int, off64_t) -> c_int;
    if refused(fd, Call::Write(length.unsigned_abs())) {
        return -1;
    }
    // SAFETY: as libc's own.
    record(
        || unsafe { real!(c"ftruncate64" as Truncate)(fd, length) },
        |recording, _| {
            if let Some(path) = recording.paths.get(&fd) {
                recording.entry(op::TRUNCATE, path, length.unsigned_abs(), &[]);
            }
        },
    )
}

fn synced(recording: &Recording, fd: c_int) {
    if let Some(path) = recording.paths.get(&fd) {
        recording.entry(op::SYNC, path, 0, &[]);
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fsync(fd: c_int) -> c_int {
    if refused(fd, Call::Sync) {
        return -1;
    }
    // SAFETY: as libc's own.
    record(|| unsafe { real!(c"fsync" as Synced)(fd) }, |recording, _| synced(recording, fd))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fdatasync(fd: c_int) -> c_int {
    if refused(fd, Call::Sync) {
        return -1;
    }
    // SAFETY: as libc's own.
    record(|| unsafe { real!(c"fdatasync" as Synced)(fd) }, |recording, _| synced(recording, fd))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rename(from: *const c_char, to: *const c_char) -> c_int {
    type Rename = unsafe extern "C" fn(*const c_char, *const c_char) -> c_int;
    // SAFETY: as libc's own.
    record(
        || unsafe { real!(c"rename" as Rename)(from, to) },
        |recording, _| {
            // SAFETY: the call succeeded, so both are C strings.
            let (from, to) = unsafe { (text(from), text(to)) };
            if let (Some(from), Some(to)) = (recording.below(&from), recording.below(&to)) {
                recording.entry(op::RENAME, &from, 0, to.as_bytes());
            }
        },
    )
}

unsafe fn named(op: u8, path: *const c_char, call: impl FnOnce() -> c_int) -> c_int {
    record(call, |recording, _| {
        // SAFETY: the call succeeded, so it is a C string.
        if let Some(path) = recording.below(&unsafe { text(path) }) {
            recording.entry(op, &path, 0, &[]);
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn unlink(path: *const c_char) -> c_int {
    // SAFETY: as libc's own.
    unsafe { named(op::UNLINK, path, || real!(c"unlink" as Named)(path)) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mkdir(path: *const c_char, mode: c_uint) -> c_int {
    type Mkdir = unsafe extern "C" fn(*const c_char, c_uint) -> c_int;
    // SAFETY: as libc's own.
    unsafe { named(op::MKDIR, path, || real!(c"mkdir" as Mkdir)(path, mode)) }
}
