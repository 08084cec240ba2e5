//! The size of a dispatch, and its execution by the driver.

/// The number of workgroups of a dispatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Workgroups {
    /// Workgroups of each class.
    pub groups: u32,
    /// Workgroups that run no thread of the test.
    pub stress: u32,
}

impl Workgroups {
    /// Returns the workgroups of a kernel with `classes` classes.
    pub fn for_classes(self, classes: u32) -> u32 {
        self.groups * classes + self.stress
    }
}

/// The execution of a submission by a driver, according to its receipts, overflow words and checksums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Execution {
    /// Exactly as requested.
    AsRequested,
    /// A part was omitted, repeated or changed.
    Incomplete,
    /// With invocations outside the grid.
    Excessive {
        /// The number of these invocations.
        outside: u64,
    },
    /// Exactly as requested, but the host reads other words than the device has.
    Misread,
}
