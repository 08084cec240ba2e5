//! A prepared plan on a device that compiles and never executes.

use std::time::Duration;

use plan::{BufferId, DeviceError, Prepared, Progress};

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
