//! What a driver writes to standard output while something is done: Honeykrisp shows its code there and nowhere else.

use std::ffi::{c_int, c_void};
use std::io::{Read, Seek};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;

/// The descriptor of standard output.
const OUTPUT: c_int = 1;

unsafe extern "C" {
    fn dup(descriptor: c_int) -> c_int;
    fn dup2(from: c_int, to: c_int) -> c_int;
    fn close(descriptor: c_int) -> c_int;
    fn fflush(stream: *mut c_void) -> c_int;
}

/// Puts standard output back where it was.
struct Restore(c_int);

impl Drop for Restore {
    fn drop(&mut self) {
        // SAFETY: a null stream stands for all; the descriptor is this value's own, and is not used again.
        unsafe {
            fflush(std::ptr::null_mut());
            dup2(self.0, OUTPUT);
            close(self.0);
        }
    }
}

/// Does something, and tells what was written to standard output meanwhile; nothing where that cannot be caught.
pub(crate) fn output_of<T>(act: impl FnOnce() -> T) -> (T, String) {
    let Ok(mut file) = nameless_file() else { return (act(), String::new()) };
    // SAFETY: flushing all streams and copying a descriptor ask nothing of their caller.
    let before = unsafe {
        fflush(std::ptr::null_mut());
        dup(OUTPUT)
    };
    if before < 0 {
        return (act(), String::new());
    }
    let restore = Restore(before);
    // SAFETY: both descriptors are open: one is the file's, and the other was just copied.
    if unsafe { dup2(file.as_raw_fd(), OUTPUT) } < 0 {
        return (act(), String::new());
    }
    let done = act();
    drop(restore);
    let mut bytes = Vec::new();
    let read = file.rewind().and_then(|()| file.read_to_end(&mut bytes));
    (done, if read.is_ok() { String::from_utf8_lossy(&bytes).into_owned() } else { String::new() })
}

/// A file that nobody else sees.
fn nameless_file() -> std::io::Result<std::fs::File> {
    let path = std::env::temp_dir().join(format!("vk-litmus-output-{}", std::process::id()));
    let file = std::fs::OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}
