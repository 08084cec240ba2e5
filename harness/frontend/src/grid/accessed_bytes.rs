//! The bytes of each resource that one walk of a kernel accesses.

use std::collections::BTreeMap;

use litmus::StorageClass;
use rustc_hash::FxHashMap;
use spirv_reader::SpirvModule;

use super::memory::MemoryObject;
use super::state::Interpreter;
use super::trial::walk_prepared;
use super::value::ConcreteValue;
use crate::error::Refusal;
use crate::options::AnalysisOptions;

/// Bytes of an object, from the first to the one after the last.
pub type ByteRange = (u64, u64);

/// The bytes of a resource that a walk accessed, as disjoint ranges in ascending order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceAccess {
    /// Bytes that were read.
    pub reads: Vec<ByteRange>,
    /// Bytes that were written. An atomic operation that returns a value reads and writes.
    pub writes: Vec<ByteRange>,
}

/// The accesses of one walk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessedBytes {
    /// By descriptor set, binding, and element of an array.
    pub bindings: BTreeMap<(u32, u32, u32), ResourceAccess>,
    /// By name of an address input.
    pub addresses: BTreeMap<String, ResourceAccess>,
    /// False if a limit ended the walk; then bytes may be missing.
    pub is_complete: bool,
}

/// Disjoint ranges, by their starts.
#[derive(Clone, Debug, Default)]
struct RangeSet(BTreeMap<u64, u64>);

impl RangeSet {
    /// Adds a range and merges it with those that it overlaps or touches.
    fn insert(&mut self, mut start: u64, mut end: u64) {
        if let Some((first, last)) = self.0.range(..=start).next_back() {
            if *last >= end {
                return;
            }
            if *last >= start {
                start = *first;
            }
        }
        while let Some((first, last)) = self.0.range(start..=end).next() {
            let first = *first;
            end = end.max(*last);
            self.0.remove(&first);
        }
        self.0.insert(start, end);
    }
}

/// The accesses of a walk, by object.
#[derive(Clone, Debug, Default)]
pub(super) struct AccessRecorder(FxHashMap<u32, (RangeSet, RangeSet)>);

impl AccessRecorder {
    /// Records an access to an object outside of workgroup memory.
    pub fn record(&mut self, object: u32, start: u64, bytes: u32, kind: (bool, bool)) {
        let (reads, writes) = self.0.entry(object).or_default();
        let end = start.saturating_add(u64::from(bytes));
        if kind.0 {
            reads.insert(start, end);
        }
        if kind.1 {
            writes.insert(start, end);
        }
    }
}

/// Walks a kernel once, with at most `most` steps, and returns the bytes that it accesses.
///
/// Another schedule may access other bytes if the shader depends on the schedule. Read-only images are left out.
///
/// # Errors
/// See [`super::analyze_grid`]; limits are not errors.
pub fn accessed_bytes(
    module: &SpirvModule,
    options: &AnalysisOptions,
    most: u64,
) -> Result<AccessedBytes, Refusal> {
    let prepare = |machine: &mut Interpreter<'_>| {
        machine.accessed = Some(AccessRecorder::default());
        // Accesses to read-only buffers skip the race check, which records. They can take part in it: nothing writes.
        let read_only = |object: &&mut MemoryObject| object.class.is_none() && object.texels.is_none();
        machine
            .objects
            .iter_mut()
            .filter(read_only)
            .for_each(|object| object.class = Some(StorageClass::Buffer));
    };
    walk_prepared(module, options, most, prepare, |machine, is_complete| {
        let recorder = machine.accessed.as_ref();
        let access_of = |object: u32| {
            let (reads, writes) = recorder.and_then(|all| all.0.get(&object))?;
            let ranges = |set: &RangeSet| set.0.iter().map(|(start, end)| (*start, *end)).collect();
            Some(ResourceAccess { reads: ranges(reads), writes: ranges(writes) })
        };
        let mut all = AccessedBytes { is_complete, ..AccessedBytes::default() };
        for (variable, slot) in &machine.program.variables {
            let Some(ConcreteValue::Pointer(pointer)) = machine.globals.get(*slot) else { continue };
            let decorations = machine.program.module.decorations_of(*variable);
            let (Some(binding), set) = (decorations.binding, decorations.set.unwrap_or(0)) else { continue };
            let one = [pointer.object];
            let objects = machine.descriptors.get(&pointer.object).map_or(&one[..], |array| &array.objects);
            for (element, object) in (0..).zip(objects) {
                if let Some(access) = access_of(*object) {
                    all.bindings.insert((set, binding, element), access);
                }
            }
        }
        for (number, object) in (0..).zip(&machine.objects).filter(|(_, object)| object.variable == 0) {
            if let Some(access) = access_of(number) {
                all.addresses.insert(object.name.clone(), access);
            }
        }
        all
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_merged() {
        let mut set = RangeSet::default();
        for (start, end) in [(8, 12), (0, 4), (20, 24), (4, 8), (22, 30), (9, 10)] {
            set.insert(start, end);
        }
        assert_eq!(set.0.into_iter().collect::<Vec<_>>(), [(0, 12), (20, 30)]);
    }
}
