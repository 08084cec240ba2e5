//! Variants that set the size of workgroups, and the number of concurrent workgroups.
//!
//! Neither changes the meaning of a test under the model. They change what compilers and devices do: for
//! partial subgroups, single invocations, the largest size and several dimensions, and on a nearly idle or a
//! fully occupied device.

use std::fmt;
use std::num::NonZeroU16;
use std::str::FromStr;

/// The size of a workgroup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WorkgroupShape {
    /// As many invocations in x as the threads of the test need.
    #[default]
    Fitting,
    /// `size-33`, `size-8x4`, `size-7x5x3`: this many in x, y and z. Invocations without a thread idle.
    Sized([u32; 3]),
    /// `size-limit`: the device's maximum in x.
    Limit,
}

/// The prefix of the words of sizes.
const PREFIX: &str = "size-";
const LIMIT: &str = "limit";
/// The largest size in one direction that a word can have; the limits of devices are lower.
const MAX_SIZE: u32 = 65_535;

/// Error for a word that is not a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a workgroup size")]
pub struct ParseShapeError;

impl WorkgroupShape {
    /// One example of each kind of word.
    pub const EXAMPLES: [(&'static str, WorkgroupShape); 4] = [
        ("size-1", WorkgroupShape::Sized([1, 1, 1])),
        ("size-33", WorkgroupShape::Sized([33, 1, 1])),
        ("size-7x5x3", WorkgroupShape::Sized([7, 5, 3])),
        ("size-limit", WorkgroupShape::Limit),
    ];

    /// Returns the size in x, y and z on a device with these limits, or `None` for
    /// [`Fitting`](WorkgroupShape::Fitting).
    pub fn size(self, max_invocations: u32, max_size: [u32; 3]) -> Option<[u32; 3]> {
        match self {
            WorkgroupShape::Fitting => None,
            WorkgroupShape::Sized(size) => Some(size),
            WorkgroupShape::Limit => Some([max_invocations.min(max_size[0]), 1, 1]),
        }
    }
}

impl FromStr for WorkgroupShape {
    type Err = ParseShapeError;

    fn from_str(word: &str) -> Result<WorkgroupShape, ParseShapeError> {
        let text = word.strip_prefix(PREFIX).ok_or(ParseShapeError)?;
        if text == LIMIT {
            return Ok(WorkgroupShape::Limit);
        }
        let mut size = [1; 3];
        let mut places = size.iter_mut();
        for part in text.split('x') {
            let number = part.parse().ok().filter(|number| (1..=MAX_SIZE).contains(number));
            // Each size has one name.
            let number = number.filter(|number: &u32| number.to_string() == part).ok_or(ParseShapeError)?;
            *places.next().ok_or(ParseShapeError)? = number;
        }
        Ok(WorkgroupShape::Sized(size))
    }
}

/// Writes the word, or nothing for [`Fitting`](WorkgroupShape::Fitting).
impl fmt::Display for WorkgroupShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WorkgroupShape::Fitting => Ok(()),
            WorkgroupShape::Sized([x, 1, 1]) => write!(f, "{PREFIX}{x}"),
            WorkgroupShape::Sized([x, y, 1]) => write!(f, "{PREFIX}{x}x{y}"),
            WorkgroupShape::Sized([x, y, z]) => write!(f, "{PREFIX}{x}x{y}x{z}"),
            WorkgroupShape::Limit => write!(f, "{PREFIX}{LIMIT}"),
        }
    }
}

/// The number of concurrent workgroups: of one dispatch, and of the dispatches recorded with it without a
/// dependency between them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WorkgroupCount {
    /// Drawn at random by the runner.
    #[default]
    Random,
    /// `workgroups-256`: this many. If a test needs several, the number is rounded down to whole groups.
    Fixed(NonZeroU16),
}

/// The prefix of the words of numbers of workgroups.
const FILLING: &str = "workgroups-";

impl WorkgroupCount {
    /// One example of each kind of word.
    pub const EXAMPLES: [(&'static str, WorkgroupCount); 1] =
        [("workgroups-256", WorkgroupCount::Fixed(NonZeroU16::MIN.saturating_add(255)))];

    /// Returns the number of workgroups, or `None` if it is drawn.
    pub fn workgroups(self) -> Option<u32> {
        match self {
            WorkgroupCount::Random => None,
            WorkgroupCount::Fixed(count) => Some(u32::from(count.get())),
        }
    }
}

/// Error for a word that is not a number of workgroups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a number of workgroups")]
pub struct ParseCountError;

impl FromStr for WorkgroupCount {
    type Err = ParseCountError;

    fn from_str(word: &str) -> Result<WorkgroupCount, ParseCountError> {
        let text = word.strip_prefix(FILLING).ok_or(ParseCountError)?;
        let count: NonZeroU16 = text.parse().map_err(|_| ParseCountError)?;
        // Each number has one name.
        if count.to_string() == text { Ok(WorkgroupCount::Fixed(count)) } else { Err(ParseCountError) }
    }
}

/// Writes the word, or nothing if the number is drawn.
impl fmt::Display for WorkgroupCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WorkgroupCount::Random => Ok(()),
            WorkgroupCount::Fixed(count) => write!(f, "{FILLING}{count}"),
        }
    }
}
