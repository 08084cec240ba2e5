//! Smaller inputs of a failure: fewer workgroups, shorter slices.
//!
//! Greedy, one number at a time: 1, half, one less. A candidate counts if its findings are among the original ones,
//! by kind and place, and the first one remains. The order of the candidates is fixed, so that the result is the same
//! every time unless the time limit ends the search.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use entry_point::{AnalysisOptions, FindingKind};
use model::Model;
use spirv_reader::SourcePosition;
use walk::{GridFinding, GridReport};

use super::{Descriptor, LoadedDispatch, Memory};

/// Upper bound on the candidates.
const MAX_CANDIDATES: usize = 100;
/// Upper bound on the steps of all candidates.
const MAX_STEPS: u64 = 20_000_000;

/// The smallest grid and slices with the same findings.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SmallestFailure {
    /// The number of workgroups.
    pub grid: [u32; 3],
    /// The elements of each slice of a buffer, by set and binding.
    pub elements: BTreeMap<(u32, u32), usize>,
}

impl fmt::Display for SmallestFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "smallest failure found: `.grid({:?})`", self.grid)?;
        self.elements.iter().try_for_each(|((set, binding), elements)| {
            write!(f, ", {elements} elements at set {set}, binding {binding}")
        })
    }
}

/// The kind of a finding and the instructions.
fn signature(finding: &GridFinding) -> (FindingKind, Vec<SourcePosition>) {
    (finding.kind, finding.at.iter().map(|spot| spot.place).collect())
}

impl LoadedDispatch {
    pub(super) fn shrink(
        &self,
        memory: &Memory,
        unused: &BTreeSet<Descriptor>,
        model: &Model,
        (options, report): (&AnalysisOptions, &GridReport),
        limit: Duration,
    ) -> SmallestFailure {
        let mut grid = options.grid.unwrap_or([1; 3]);
        let mut memory = memory.clone();
        memory.retain(|at, _| self.descriptor_of(*at).is_some());
        let known: Vec<_> = report.findings.iter().map(signature).collect();
        let (mut candidates, mut steps) = (0, 0);
        let deadline = self.options_with(&memory, unused, limit).deadline;
        let mut fails_alike = |memory: &Memory, grid: [u32; 3]| {
            candidates += 1;
            if candidates > MAX_CANDIDATES || steps > MAX_STEPS {
                return false;
            }
            let options = self.options_with(memory, unused, limit);
            let options = AnalysisOptions { grid: Some(grid), deadline: deadline.clone(), ..options };
            let Ok((_, report)) = self.walk(options, model, limit) else { return false };
            steps += report.steps;
            let found: Vec<_> = report.findings.iter().map(signature).collect();
            known.first().is_some_and(|first| found.contains(first))
                && found.iter().all(|one| known.contains(one))
        };
        for axis in 0..3 {
            shrink_number(grid[axis] as usize, |smaller| {
                let mut fewer = grid;
                fewer[axis] = smaller as u32;
                let is_alike = fails_alike(&memory, fewer);
                if is_alike {
                    grid = fewer;
                }
                is_alike
            });
        }
        let mut elements = BTreeMap::new();
        let buffers: Vec<Descriptor> = memory.keys().copied().collect();
        for at in buffers {
            let Some(whole) = memory.get(&at).filter(|bound| bound.image.is_none()).cloned() else {
                continue;
            };
            let length = shrink_number(whole.bytes.len() / whole.element_bytes, |smaller| {
                let mut shorter = memory.clone();
                if let Some(bound) = shorter.get_mut(&at) {
                    bound.bytes.truncate(smaller * whole.element_bytes);
                }
                let is_alike = fails_alike(&shorter, grid);
                if is_alike {
                    memory = shorter;
                }
                is_alike
            });
            elements.insert(at, length);
        }
        SmallestFailure { grid, elements }
    }
}

/// Returns the smallest number that a greedy search accepts.
fn shrink_number(mut number: usize, mut is_accepted: impl FnMut(usize) -> bool) -> usize {
    while number > 1 {
        let Some(smaller) = [1, number / 2, number - 1].into_iter().find(|smaller| is_accepted(*smaller))
        else {
            break;
        };
        number = smaller;
    }
    number
}
