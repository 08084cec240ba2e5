//! Smaller inputs of a failure: fewer workgroups, shorter slices, numbers nearer to zero.
//!
//! A binary search of one number after the other. A candidate counts if its findings are among the original ones,
//! by kind and place, and the first one remains. The order of the candidates is fixed, so that the result is the same
//! every time unless the time limit ends the search.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use arithmetic::mask;
use entry_point::{AnalysisOptions, FindingKind};
use model::Model;
use spirv_reader::SourcePosition;
use walk::{GridFinding, GridReport};

use super::device::{format_element, little_endian};
use super::error::SmallestFailure;
use super::{Descriptor, LoadedDispatch, Memory};

/// Upper bound on the candidates.
const MAX_CANDIDATES: usize = 150;
/// Upper bound on the elements of a slice whose numbers are made smaller and printed.
const MAX_VALUES: u64 = 8;
/// Upper bound on the steps of all candidates.
const MAX_STEPS: u64 = 20_000_000;

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
        // Fewer workgroups in one axis may allow fewer in another.
        for axis in [0, 1, 2, 0, 1, 2] {
            shrink_number(grid[axis].into(), 1, |smaller| {
                let mut fewer = grid;
                fewer[axis] = smaller as u32;
                let is_alike = fails_alike(&memory, fewer);
                if is_alike {
                    grid = fewer;
                }
                is_alike
            });
        }
        let (mut elements, mut values) = (BTreeMap::new(), BTreeMap::new());
        let buffers: Vec<Descriptor> = memory.keys().copied().collect();
        for at in buffers {
            let Some(whole) = memory.get(&at).filter(|bound| bound.image.is_none()).cloned() else {
                continue;
            };
            // Tries other bytes of the buffer, and keeps them if the dispatch fails alike.
            let mut try_bytes = |change: &mut dyn FnMut(&mut Vec<u8>)| {
                let mut changed = memory.clone();
                if let Some(bound) = changed.get_mut(&at) {
                    change(&mut bound.bytes);
                }
                let is_alike = fails_alike(&changed, grid);
                if is_alike {
                    memory = changed;
                }
                is_alike
            };
            let size = whole.element_bytes;
            let length = shrink_number((whole.bytes.len() / size) as u64, 1, |smaller| {
                try_bytes(&mut |bytes| bytes.truncate(smaller as usize * size))
            });
            elements.insert(at, length as usize);
            let is_zero = try_bytes(&mut |bytes| bytes.fill(0));
            for range in (0..length as usize).map(|index| index * size..(index + 1) * size) {
                if is_zero || length > MAX_VALUES || size > 8 {
                    break;
                }
                let sign = whole.number_type().is_some_and(|ty| ty.starts_with('i'));
                let bits = 8 * size as u32;
                let given = little_endian(whole.bytes.get(range.clone()).unwrap_or_default());
                let is_negative = sign && given >> (bits - 1) & 1 != 0;
                let negate =
                    |number: u64| if is_negative { number.wrapping_neg() & mask(bits) } else { number };
                let is_float = whole.number_type().is_some_and(|ty| ty.starts_with('f'));
                shrink_number(negate(given), 0, |smaller| {
                    // Numbers between the bits of floats have no meaning here.
                    (smaller == 0 || !is_float)
                        && try_bytes(&mut |bytes| {
                            if let Some(element) = bytes.get_mut(range.clone()) {
                                element.copy_from_slice(&negate(smaller).to_le_bytes()[..size]);
                            }
                        })
                });
            }
            let bytes = memory.get(&at).map(|bound| bound.bytes.as_slice()).unwrap_or_default();
            let ty = whole.number_type().unwrap_or_default();
            if length <= MAX_VALUES && size <= 8 {
                values.insert(at, bytes.chunks(size).map(|element| format_element(ty, element)).collect());
            }
        }
        SmallestFailure { grid, elements, values }
    }
}

/// Returns a number of which the next smaller one is rejected, at least `least`.
///
/// The search is binary, as if every number above an accepted one were accepted.
fn shrink_number(number: u64, least: u64, mut is_accepted: impl FnMut(u64) -> bool) -> u64 {
    if number <= least || is_accepted(least) {
        return number.min(least);
    }
    let (mut rejected, mut accepted) = (least, number);
    while accepted - rejected > 1 {
        let middle = rejected + (accepted - rejected) / 2;
        match is_accepted(middle) {
            true => accepted = middle,
            false => rejected = middle,
        }
    }
    accepted
}
