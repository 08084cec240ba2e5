//! A prepared plan on a device that compiles and never executes.

use std::time::Duration;

use plan::{BufferId, DeviceError, Prepared, Progress};

/// What the names of the libraries end with that stand in for a kernel's device: drivers on them find hardware that is not
/// there, under names and types of real hardware.
const SHIM: &str = "_noop_drm_shim";

/// Returns true if this process has such a library loaded.
pub(crate) fn is_shimmed() -> bool {
    std::fs::read_to_string("/proc/self/maps").is_ok_and(|maps| shows_shim(&maps))
}

fn shows_shim(maps: &str) -> bool {
    // The sixth column is the file.
    maps.lines().filter_map(|line| line.split_whitespace().nth(5)).any(|file| file.contains(SHIM))
}

/// It takes any plan, and answers that nothing was executed: such devices have no memory that could hold a result, or
/// signal fences and leave memory as it was.
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
        assert!(shows_shim(&(mapped("libc.so.6") + &mapped("libamdgpu_noop_drm_shim.so"))));
        assert!(!shows_shim(&(mapped("libdrm.so.2") + "7f20-7f30 rw-p 00000000 00:00 0\n")));
        assert!(!is_shimmed());
    }
}
