//! The bytes of each resource that one walk of a kernel accesses.

use std::collections::BTreeMap;

use litmus::StorageClass;
use spirv_reader::SpirvModule;

use super::access_recorder::{AccessRecorder, ByteRange};
use super::memory::MemoryObject;
use super::state::Interpreter;
use super::trial::walk_prepared;
use super::value::ConcreteValue;
use crate::error::Refusal;
use crate::options::AnalysisOptions;

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
            let (reads, writes) = recorder.and_then(|all| all.ranges_of(object))?;
            Some(ResourceAccess { reads, writes })
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
