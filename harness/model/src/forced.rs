//! The reads-from edges that the values of a `.test` file force.

use litmus::{Khronos, ScalarType, Value};

use crate::skeleton::{Event, Owner, Skeleton, Tags};
use crate::symbolic::SymbolicValue;

/// Returns the forced reads-from edges: a write and a read through one name with equal values, and the
/// initial state for a read of 0.
///
/// An unspecified value equals another unspecified value.
pub(crate) fn forced_reads(skeleton: &Skeleton, khronos: &Khronos) -> Vec<(u16, u16)> {
    let mut forced = Vec::new();
    for (read, target) in skeleton.events.iter().enumerate() {
        let (Owner::Thread(thread), Some(instruction)) = (target.owner, target.instruction) else { continue };
        if !target.tags.has(Tags::R) {
            continue;
        }
        let read_value = khronos.read_value(usize::from(thread.0), usize::from(instruction));
        let is_initial = |event: &Event| event.tags.has(Tags::IW) && event.storage == target.storage;
        // If every name has an initial write, use the write of the name itself.
        let initial = skeleton.events.iter().position(|e| is_initial(e) && e.reference == target.reference);
        let initial = initial.or_else(|| skeleton.events.iter().position(is_initial));
        for (write, source) in skeleton.events.iter().enumerate() {
            let is_forced = if source.tags.has(Tags::IW) {
                read_value == 0 && initial == Some(write)
            } else {
                let scalar = ScalarType::default();
                source.tags.has(Tags::W)
                    && source.reference == target.reference
                    && source.stored_value.as_ref().and_then(SymbolicValue::known_value)
                        == Some(Value::from_constant(read_value, scalar))
            };
            if is_forced {
                forced.push((read as u16, write as u16));
            }
        }
    }
    forced
}
