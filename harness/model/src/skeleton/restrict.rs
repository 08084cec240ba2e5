//! The part of an event structure that some of its events form.

use litmus::Value;

use super::{Event, ExecutedBarrierHalf, Skeleton};
use crate::symbolic::SymbolicValue;

impl Skeleton {
    /// Returns the event structure of these events, in ascending order, whose writes store the given values.
    pub(crate) fn restrict(&self, events: &[usize], stored: &dyn Fn(usize) -> Option<Value>) -> Skeleton {
        let number = |event: u16| events.binary_search(&usize::from(event)).ok().map(|number| number as u16);
        let restrict_pairs = |pairs: &[(u16, u16)]| -> Vec<(u16, u16)> {
            pairs.iter().filter_map(|(from, to)| Some((number(*from)?, number(*to)?))).collect()
        };
        let restricted = events.iter().zip(0..).map(|(old, new)| {
            let event = &self.events[*old];
            Event {
                stored_value: stored(*old).map(SymbolicValue::Known),
                first_of_operation: number(event.first_of_operation).unwrap_or(new),
                first_of_vector: number(event.first_of_vector).unwrap_or(new),
                write_half: event.write_half.and_then(number),
                ..event.clone()
            }
        });
        let halves = self
            .barrier_halves
            .iter()
            .filter_map(|half| Some(ExecutedBarrierHalf { event: number(half.event)?, ..half.clone() }));
        Skeleton {
            events: restricted.collect(),
            terminated: self.terminated,
            is_truncated: self.is_truncated,
            // The values are known.
            constraints: Vec::new(),
            final_values: Vec::new(),
            forced_reads_from: restrict_pairs(&self.forced_reads_from),
            barrier_sync: restrict_pairs(&self.barrier_sync),
            barrier_halves: halves.collect(),
            system_sync: restrict_pairs(&self.system_sync),
            address_dependencies: restrict_pairs(&self.address_dependencies),
            control_dependencies: restrict_pairs(&self.control_dependencies),
            data_dependencies: restrict_pairs(&self.data_dependencies),
            shader_call_order: restrict_pairs(&self.shader_call_order),
            subgroup_order: restrict_pairs(&self.subgroup_order),
            interlock_order: restrict_pairs(&self.interlock_order),
            uncovered_pairs: restrict_pairs(&self.uncovered_pairs),
            shader_call_groups: self.shader_call_groups.clone(),
            overlapping_fragments: self.overlapping_fragments.clone(),
        }
    }
}
