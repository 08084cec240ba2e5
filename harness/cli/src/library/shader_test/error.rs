//! Failures of tests: findings and hazards with their source lines, and wrong inputs.

use std::collections::BTreeMap;
use std::fmt;

use results::wire::{FindingPlace, RaceLine, RaceVerdict};
use results::write::race::{format_places, format_race};

use crate::library::error::Error;

/// Why a test of a shader fails.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShaderTestError {
    /// The shader has a finding.
    #[error("{}", FindingText { line, text: text.as_deref(), dispatch: *dispatch, token: token.as_deref(), smallest: smallest.as_deref() })]
    Finding {
        /// The findings.
        line: Box<RaceLine>,
        /// The source, if it is known.
        text: Option<String>,
        /// The number of the dispatch, from 1.
        dispatch: usize,
        /// The schedule, for [`ShaderTest::replay`](super::ShaderTest::replay); `None` if the model found the defect, in all schedules at once.
        token: Option<String>,
        /// Smaller inputs of the dispatch with the same findings; `None` in a replay.
        smallest: Option<Box<SmallestFailure>>,
    },
    /// Two dispatches without a barrier between them access the same bytes.
    #[error(
        "dispatch {second} {what} dispatch {first} at set {set}, binding {binding}, byte {byte}, without a \
         barrier between them; expected `then` in place of `then_unsynchronized`\n{}",
        format_accesses(accesses)
    )]
    Hazard {
        /// The number of the first dispatch, from 1.
        first: usize,
        /// The number of the second dispatch.
        second: usize,
        /// The accesses, such as `reads what is written by`.
        what: &'static str,
        /// The descriptor set of the first binding of the memory.
        set: u32,
        /// Its binding.
        binding: u32,
        /// The first such byte; for images, of 16 bytes per texel.
        byte: u64,
        /// The accesses, first that of the first dispatch.
        accesses: Vec<DispatchAccess>,
    },
    /// The walk reached a limit or something that it does not support.
    #[error("{}{}", format_race(.0), limit_hint(.0))]
    Undecided(Box<RaceLine>),
    /// The shader or an input is wrong.
    #[error(transparent)]
    Shader(#[from] Error),
    /// The shader or an input does not fit, with what was expected.
    #[error("{0}")]
    Input(String),
    /// A device leaves other contents than the walk.
    #[error(
        "set {set}, binding {binding}, element {index}: {device} on {selector}; expected {walk}, which the walk computes"
    )]
    DeviceDiffers {
        /// The device.
        selector: String,
        /// The descriptor set.
        set: u32,
        /// The binding.
        binding: u32,
        /// The first differing element; if elements are no numbers, of 4 bytes.
        index: usize,
        /// Its value in the walk.
        walk: String,
        /// Its value on the device.
        device: String,
    },
    /// Two slices are bound to one descriptor.
    #[error("set {0}, binding {1} is bound twice; expected one slice for each binding")]
    BoundTwice(u32, u32),
    /// The walk does not compute a byte of a bound buffer.
    #[error(
        "set {set}, binding {binding}: byte {byte} is not computed: it is undefined or unspecified, as a texel without `bind_sampler`"
    )]
    Unknown {
        /// The descriptor set.
        set: u32,
        /// The binding.
        binding: u32,
        /// The offset of the first such byte.
        byte: usize,
    },
}

/// Returns a remedy if a limit ended the walk.
fn limit_hint(line: &RaceLine) -> &'static str {
    match line.verdict {
        RaceVerdict::Undecided => {
            "expected a kernel that ends, a smaller grid, or a higher `time_limit` or `step_limit`"
        }
        _ => "",
    }
}

/// The smallest grid and slices with the same findings.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SmallestFailure {
    /// The number of workgroups.
    pub grid: [u32; 3],
    /// The number of elements of each slice of a buffer, by set and binding.
    pub elements: BTreeMap<(u32, u32), usize>,
    /// The elements of short slices of numbers.
    pub values: BTreeMap<(u32, u32), Vec<String>>,
}

impl fmt::Display for SmallestFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "smallest failure found: `.grid({:?})`", self.grid)?;
        self.elements.iter().try_for_each(|(at, elements)| {
            let noun = if *elements == 1 { "element" } else { "elements" };
            write!(f, ", {elements} {noun} at set {}, binding {}", at.0, at.1)?;
            self.values.get(at).map_or(Ok(()), |values| write!(f, ": {}", values.join(" ")))
        })
    }
}

/// An access of a dispatch with its source line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DispatchAccess {
    /// The number of the dispatch, from 1.
    pub dispatch: usize,
    /// The position.
    pub place: FindingPlace,
    /// The text of the line, if it is known.
    pub snippet: Option<String>,
}

fn format_accesses(accesses: &[DispatchAccess]) -> String {
    let mut text = String::new();
    for DispatchAccess { dispatch, place, snippet } in accesses {
        text += &format!("  dispatch {dispatch}:\n{}", format_places(std::slice::from_ref(place)));
        if let (Some(snippet), Some(line)) = (snippet, place.line) {
            text += &format!("{line:5} | {snippet}\n");
        }
    }
    text
}

/// The findings of a test, each place with its source line.
struct FindingText<'a> {
    line: &'a RaceLine,
    text: Option<&'a str>,
    dispatch: usize,
    token: Option<&'a str>,
    smallest: Option<&'a SmallestFailure>,
}

impl fmt::Display for FindingText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format_race(self.line))?;
        let lines: Vec<&str> = self.text.unwrap_or_default().lines().collect();
        let places = self.line.findings.iter().flat_map(|finding| &finding.at);
        let mut numbers: Vec<u32> = places.filter_map(|place| place.line).collect();
        numbers.sort_unstable();
        numbers.dedup();
        for number in numbers {
            if let Some(text) = lines.get(number as usize - 1) {
                writeln!(f, "{number:5} | {text}")?;
            }
        }
        if let Some(smallest) = self.smallest {
            writeln!(f, "{smallest}")?;
        }
        match self.token {
            Some(token) => {
                write!(f, "this schedule of dispatch {} again: `.replay(\"{token}\")`", self.dispatch)
            }
            None => {
                write!(f, "the model has this finding in dispatch {}; no schedule is needed", self.dispatch)
            }
        }
    }
}
