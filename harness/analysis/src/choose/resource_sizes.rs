//! Trials in which the grid covers the resources whose sizes the code queries.
//!
//! Of a larger resource, the invocations reach a corner only, and meet none of those that access the rest.

use std::collections::HashMap;
use std::sync::Arc;

use super::saturating_product;
use super::search::{InputSearch, default_size};
use entry_point::input_place::{AssumedInput, InputPlace, SetBinding};
use entry_point::inputs::{DEFAULT_BYTES, ImageInput};
use entry_point::{AnalysisOptions, FindingKind};
use spirv_reader::{Specialized, SpirvModule, SpirvType};
use walk::FindingKey;

/// Positions along an axis beyond the end of a resource: of an exact grid, and of grids that are rounded up.
const EXCESS_POSITIONS: [u64; 3] = [0, 1, 3];

impl InputSearch<'_> {
    /// Tries sizes that the grid covers for all resources whose size decides a branch or an address; returns the first
    /// trial with a race that no other trial has.
    pub(super) fn try_covered_sizes(&mut self, base: usize, others: &[usize]) -> Option<usize> {
        let (options, trial) = self.trials[base].clone();
        let is_compared = |(at, _): &(usize, &AssumedInput)| trial.compared.contains_key(at);
        let is_queried = |one: &(usize, &AssumedInput)| {
            let is_size = matches!(one.1.place, InputPlace::Length(_) | InputPlace::Image(_));
            is_size && (is_compared(one) || trial.influential.contains(&one.0))
        };
        let queried: Vec<_> = options.assumed.iter().enumerate().filter(is_queried).collect();
        // Where no position is compared with a size, the grid fits the resource.
        let tried =
            if queried.iter().any(is_compared) { EXCESS_POSITIONS.len() } else { queried.len().min(1) };
        let mut shown = None;
        for excess in EXCESS_POSITIONS.into_iter().take(tried) {
            let mut smaller = options.clone();
            queried.iter().for_each(|(_, input)| self.set_covered_size(&mut smaller, &input.place, excess));
            let Some(at) = self.try_inputs(smaller) else { break };
            let is_known =
                |key: &FindingKey| others.iter().any(|at| self.trials[*at].1.has_finding_like(key));
            let mut found = self.trials[at].1.findings.keys();
            let is_new = found
                .any(|key| (key.0.is_race() || key.0 == FindingKind::DivergentBarrier) && !is_known(key));
            shown = shown.or(Some(at).filter(|_| is_new && self.trials[at].1.is_complete));
        }
        shown.filter(|at| self.is_conventional(*at))
    }

    /// Sets the size of a resource to the positions of the grid less an excess along each axis.
    fn set_covered_size(&self, options: &mut AnalysisOptions, place: &InputPlace, excess: u64) {
        let mut counts = self.invocation_counts;
        match *place {
            InputPlace::Length(at) => {
                let count = saturating_product(counts).saturating_sub(excess).max(1);
                let bytes = bytes_of_elements(self.module, options, at, count);
                if let (Some(bytes), Some(contents)) = (bytes, options.buffers.get_mut(&at)) {
                    Arc::make_mut(contents).resize(bytes as usize, 0);
                }
            }
            InputPlace::Image(at) => {
                let Some(default) = default_size(self.module, at) else { return };
                // Positions along one axis are those of all texels.
                if counts[1] == 1 && default[1] > 1 {
                    counts[1] = 1 << (counts[0].ilog2() / 2);
                    counts[0] /= counts[1];
                }
                let smaller = |axis: usize| counts[axis].saturating_sub(excess).max(1) as u32;
                let size = [0, 1, 2].map(|axis: usize| if default[axis] > 1 { smaller(axis) } else { 1 });
                let known = options.images.remove(&at);
                let known = known.unwrap_or(ImageInput { levels: 1, ..ImageInput::default() });
                options.images.insert(at, ImageInput { size, ..known });
            }
            _ => {}
        }
    }
}

/// Returns the bytes of a buffer with some elements in the array at its end.
fn bytes_of_elements(
    module: &SpirvModule,
    options: &AnalysisOptions,
    at: SetBinding,
    count: u64,
) -> Option<u64> {
    let specialized = Specialized::new(module, &options.specialization, &HashMap::new(), None).ok()?;
    let variable = module.variables.get(module.variables_at(at).first()?)?;
    let block = module.element_type(variable.ty);
    let SpirvType::Struct { members } = module.types.get(&block)? else { return None };
    let array = specialized.part_of(block, members.len().checked_sub(1)? as u64).ok()?;
    Some(array.offset + specialized.part_of(array.ty, count).ok()?.offset)
}

/// Returns true if a resource among some inputs is larger in `other` than in `options`.
pub(super) fn has_larger_resource(
    module: &SpirvModule,
    inputs: &[usize],
    options: &AnalysisOptions,
    other: &AnalysisOptions,
) -> bool {
    let size = |options: &AnalysisOptions, input: &usize| match options.assumed.get(*input)?.place {
        InputPlace::Length(at) => {
            let bytes = options.buffers.get(&at).map_or(DEFAULT_BYTES, |bytes| bytes.len() as u64);
            Some([bytes, 1, 1])
        }
        InputPlace::Image(at) => {
            let given = options.images.get(&at).map(|image| image.size);
            Some(given.or_else(|| default_size(module, at))?.map(u64::from))
        }
        _ => None,
    };
    let is_larger = |input: &usize| {
        let sizes = size(options, input).zip(size(other, input));
        sizes.is_some_and(|(own, other)| own.iter().zip(other).any(|(own, other)| other > *own))
    };
    inputs.iter().any(is_larger)
}
