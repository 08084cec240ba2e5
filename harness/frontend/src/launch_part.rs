//! The parts of a launch: the number of workgroups and their size.

/// A part of the launch that no option supplies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LaunchPart {
    /// The number of workgroups along an axis, for values that count workgroups.
    Workgroups(usize),
    /// The number of workgroups along an axis, for values that count invocations.
    Invocations(usize),
    /// The size of workgroups along the given axes, by the specialization constant that sets it.
    LocalSize(u32, [bool; 3]),
}

impl LaunchPart {
    /// Returns the axis of a number of workgroups.
    pub(crate) fn grid_axis(self) -> Option<usize> {
        match self {
            LaunchPart::Workgroups(axis) | LaunchPart::Invocations(axis) => Some(axis),
            LaunchPart::LocalSize(..) => None,
        }
    }
}
