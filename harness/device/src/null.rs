//! A prepared plan on a compile-only device.

use std::time::Duration;

use plan::{BufferId, DeviceError, Prepared, Progress};

/// The suffix of shim libraries that replace the kernel device. Drivers on them report absent hardware under
/// real names and types.
const SHIM: &str = "_noop_drm_shim";

/// Returns true if a shim library is loaded in this process.
pub(crate) fn is_shimmed() -> bool {
    std::fs::read_to_string("/proc/self/maps").is_ok_and(|maps| contains_shim(&maps))
}

fn contains_shim(maps: &str) -> bool {
    // The sixth column is the file.
    maps.lines().filter_map(|line| line.split_whitespace().nth(5)).any(|file| file.contains(SHIM))
}

/// Accepts any plan and reports that nothing was executed.
///
/// Compile-only devices have no memory for results, or signal fences without changing memory.
#[derive(Debug)]
pub(crate) struct NullPrepared;

impl Prepared for NullPrepared {
    fn submit(&mut self) -> Result<(), DeviceError> {
        Ok(())
    }

    fn poll(&mut self, _: Duration) -> Result<Progress, DeviceError> {
        Ok(Progress::NotExecuted)
    }

    fn set_push_constants(&mut self, _: usize, _: &[u8]) -> Result<(), DeviceError> {
        Ok(())
    }

    fn set_workgroups(&mut self, _: usize, _: u32) -> Result<(), DeviceError> {
        Ok(())
    }

    fn read(&mut self, _: BufferId) -> Result<&[u32], DeviceError> {
        Ok(&[])
    }

    fn write(&mut self, _: BufferId) -> Result<&mut [u32], DeviceError> {
        Ok(&mut [])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shim_shows_among_the_mapped_files() {
        let mapped =
            |file: &str| format!("7f00-7f10 r-xp 00000000 08:01 42      /usr/lib/x86_64-linux-gnu/{file}\n");
        assert!(contains_shim(&(mapped("libc.so.6") + &mapped("libamdgpu_noop_drm_shim.so"))));
        assert!(!contains_shim(&(mapped("libdrm.so.2") + "7f20-7f30 rw-p 00000000 00:00 0\n")));
        assert!(!is_shimmed());
    }
}
