//! Sizes of workgroups, and how many of them play at once: what a variant makes of them, whatever the threads of a test take.
//!
//! The model knows no size and no number, so that a test means the same in every shape. What may differ is what a compiler and a device
//! make of workgroups that are no whole number of subgroups, of a single invocation, of as many as there may be, or of several dimensions;
//! and how a device does when it is nearly empty, and when it is full.

use std::fmt;
use std::num::NonZeroU16;
use std::str::FromStr;

/// The size of a workgroup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WorkgroupShape {
    /// As many invocations as the threads of the test take, in x.
    #[default]
    Fitting,
    /// `size-33`, `size-8x4`, `size-7x5x3`: that many in x, y and z. Those that play no thread idle.
    Sized([u32; 3]),
    /// `size-limit`: as many in x as the device has at most.
    Limit,
}

/// What words of shapes begin with.
const PREFIX: &str = "size-";
const LIMIT: &str = "limit";
/// The largest size in one direction that a word says; devices have less.
const MOST: u32 = 65_535;

/// A word that is no shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no size of a workgroup")]
pub struct NoShape;

impl WorkgroupShape {
    /// Examples of the words, each kind once.
    pub const EXAMPLES: [(&'static str, WorkgroupShape); 4] = [
        ("size-1", WorkgroupShape::Sized([1, 1, 1])),
        ("size-33", WorkgroupShape::Sized([33, 1, 1])),
        ("size-7x5x3", WorkgroupShape::Sized([7, 5, 3])),
        ("size-limit", WorkgroupShape::Limit),
    ];

    /// The size in x, y and z on a device with these limits; `None` where the threads of a test decide.
    pub(crate) fn size(self, most: u32, most_in: [u32; 3]) -> Option<[u32; 3]> {
        match self {
            WorkgroupShape::Fitting => None,
            WorkgroupShape::Sized(size) => Some(size),
            WorkgroupShape::Limit => Some([most.min(most_in[0]), 1, 1]),
        }
    }
}

impl FromStr for WorkgroupShape {
    type Err = NoShape;

    fn from_str(word: &str) -> Result<WorkgroupShape, NoShape> {
        let text = word.strip_prefix(PREFIX).ok_or(NoShape)?;
        if text == LIMIT {
            return Ok(WorkgroupShape::Limit);
        }
        let mut size = [1; 3];
        let mut places = size.iter_mut();
        for part in text.split('x') {
            let number = part.parse().ok().filter(|number| (1..=MOST).contains(number));
            // Each size has one name.
            let number = number.filter(|number: &u32| number.to_string() == part).ok_or(NoShape)?;
            *places.next().ok_or(NoShape)? = number;
        }
        Ok(WorkgroupShape::Sized(size))
    }
}

/// The word; empty where the threads of a test decide.
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

/// How many workgroups play at once: in a dispatch, and in the others that are dispatched with it and nothing between.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Filling {
    /// As many as whoever dispatches draws.
    #[default]
    Drawn,
    /// `workgroups-256`: so many; of a test that takes several, as many whole groups of those as are no more.
    Workgroups(NonZeroU16),
}

/// What words of fillings begin with.
const FILLING: &str = "workgroups-";

impl Filling {
    /// Examples of the words, each kind once.
    pub const EXAMPLES: [(&'static str, Filling); 1] =
        [("workgroups-256", Filling::Workgroups(NonZeroU16::MIN.saturating_add(255)))];

    /// The number of workgroups; `None` where it is drawn.
    pub fn workgroups(self) -> Option<u32> {
        match self {
            Filling::Drawn => None,
            Filling::Workgroups(count) => Some(u32::from(count.get())),
        }
    }
}

/// A word that is no filling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no number of workgroups")]
pub struct NoFilling;

impl FromStr for Filling {
    type Err = NoFilling;

    fn from_str(word: &str) -> Result<Filling, NoFilling> {
        let text = word.strip_prefix(FILLING).ok_or(NoFilling)?;
        let count: NonZeroU16 = text.parse().map_err(|_| NoFilling)?;
        // Each number has one name.
        if count.to_string() == text { Ok(Filling::Workgroups(count)) } else { Err(NoFilling) }
    }
}

/// The word; empty where the number is drawn.
impl fmt::Display for Filling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Filling::Drawn => Ok(()),
            Filling::Workgroups(count) => write!(f, "{FILLING}{count}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_shapes_correspond() {
        for (word, shape) in WorkgroupShape::EXAMPLES {
            assert_eq!(word.parse(), Ok(shape));
            assert_eq!(shape.to_string(), word);
        }
        for word in ["size-1024", "size-8x4", "size-1x64", "size-1x1x64", "size-4x1x4"] {
            assert_eq!(word.parse::<WorkgroupShape>().unwrap().to_string(), word);
        }
        assert_eq!("size-8x1x1".parse::<WorkgroupShape>().unwrap().to_string(), "size-8");
        for word in
            ["", "size-", "size-0", "size-07", "size-+7", "size-1x2x3x4", "size-8x", "33", "size-65536"]
        {
            assert_eq!(word.parse::<WorkgroupShape>(), Err(NoShape), "{word}");
        }
    }

    #[test]
    fn the_limit_is_that_of_the_device() {
        assert_eq!(WorkgroupShape::Limit.size(1024, [512, 512, 64]), Some([512, 1, 1]));
        assert_eq!(WorkgroupShape::Limit.size(128, [512, 512, 64]), Some([128, 1, 1]));
        assert_eq!(WorkgroupShape::Fitting.size(128, [128; 3]), None);
    }

    #[test]
    fn words_and_fillings_correspond() {
        for (word, filling) in Filling::EXAMPLES {
            assert_eq!(word.parse(), Ok(filling));
            assert_eq!(filling.to_string(), word);
        }
        for (word, count) in [("workgroups-1", 1), ("workgroups-65535", 65_535)] {
            assert_eq!(word.parse::<Filling>().unwrap().workgroups(), Some(count));
        }
        for word in
            ["", "workgroups-", "workgroups-0", "workgroups-07", "workgroups-+7", "workgroups-65536", "256"]
        {
            assert_eq!(word.parse::<Filling>(), Err(NoFilling), "{word}");
        }
    }
}
