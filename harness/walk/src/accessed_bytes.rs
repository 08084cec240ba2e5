//! The bytes of each resource that one walk of a kernel accesses.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use litmus::StorageClass;
use rspirv::spirv::{Op, StorageClass as GlobalClass};
use spirv_reader::{GlobalVariable, SpirvModule, SpirvType};

use super::access_recorder::{AccessRecorder, ByteRange};
use super::state::Interpreter;
use super::trial::walk_prepared;
use super::value::{ConcreteValue, input_taint};
use entry_point::{AnalysisOptions, Refusal};

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
    /// False if the contents of buffers, images and memory behind addresses may decide what is accessed, or the schedule may.
    ///
    /// By taint: no such value reached a branch, an address or an operand that decides control flow.
    pub is_fixed: bool,
}

/// Upper bound on bytes whose taint is tracked, which takes eight times as much memory.
const MAX_TAINTED_BYTES: usize = 1 << 25;

/// The global memory that an entry point can access, by the variables that its functions use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntryAccesses {
    /// Set and binding of each resource, with true if it may be written.
    pub resources: BTreeMap<(u32, u32), bool>,
    /// Locations of stage inputs that are loaded, unless several entry points have the name.
    pub inputs: BTreeSet<u32>,
    /// True if the module can access memory by address.
    pub has_addresses: bool,
}

/// Returns a superset of the resources that an entry point can access; `None` if there is no such entry point.
pub fn entry_accesses(module: &SpirvModule, entry: &str) -> Option<EntryAccesses> {
    let named = module.entry_points.iter().filter(|one| one.name == entry);
    let mut pending: Vec<u32> = named.map(|one| one.function).collect();
    let (is_unique, mut reached) = (pending.len() == 1, BTreeSet::new());
    let is_address =
        |ty: &SpirvType| matches!(ty, SpirvType::Pointer { class: GlobalClass::PhysicalStorageBuffer, .. });
    let has_addresses = module.types.values().any(is_address);
    let mut all = EntryAccesses { has_addresses, ..EntryAccesses::default() };
    if pending.is_empty() {
        return None;
    }
    while let Some(function) = pending.pop() {
        if !reached.insert(function) {
            continue;
        }
        for instruction in module.functions.get(&function).into_iter().flat_map(|function| &function.code) {
            let operands = module.operands_of(instruction);
            if instruction.op == Op::FunctionCall {
                pending.extend(operands.first());
            }
            let is_load = matches!(instruction.op, Op::Load | Op::AccessChain | Op::InBoundsAccessChain);
            // An operand that is a number may equal an id: the resources are a superset.
            for (index, id) in operands.iter().enumerate() {
                let Some(variable) = module.variables.get(id) else { continue };
                if variable.class == GlobalClass::Input && is_load && index == 0 && is_unique {
                    all.inputs.extend(module.decorations_of(*id).location);
                }
                if let Some(descriptor) = module.descriptor_of(*id) {
                    *all.resources.entry(descriptor).or_default() |= !is_read_only(module, *id, variable);
                }
            }
        }
    }
    Some(all)
}

/// Returns true if decorations forbid writes to a resource.
fn is_read_only(module: &SpirvModule, id: u32, variable: &GlobalVariable) -> bool {
    let mut ty = variable.ty;
    while let Some(
        SpirvType::Pointer { pointee: element, .. }
        | SpirvType::Array { element, .. }
        | SpirvType::RuntimeArray { element },
    ) = module.types.get(&ty)
    {
        ty = *element;
    }
    let is_fixed =
        |member: u32| module.member_decorations.get(&(ty, member)).is_some_and(|member| member.non_writable);
    module.decorations_of(id).non_writable
        || matches!(module.types.get(&ty), Some(SpirvType::Struct { members })
            if !members.is_empty() && (0..members.len() as u32).all(is_fixed))
}

/// Walks a kernel once, with at most `most` steps, and returns the bytes that it accesses.
///
/// Another schedule may access other bytes if [`AccessedBytes::is_fixed`] is false. Filtered samples are left out.
///
/// # Errors
/// See [`super::analyze_grid`]; limits are not errors.
pub fn accessed_bytes(
    module: &SpirvModule,
    options: &AnalysisOptions,
    most: u64,
) -> Result<AccessedBytes, Refusal> {
    let is_tracked = Cell::new(false);
    let prepare = |machine: &mut Interpreter<'_>| {
        machine.accessed = Some(AccessRecorder::default());
        let total: usize = machine.objects.iter().map(|object| object.bytes.len()).sum();
        is_tracked.set(total <= MAX_TAINTED_BYTES);
        let program = machine.program;
        for object in &mut machine.objects {
            // Accesses to read-only objects skip the race check, which records. They can take part in it: nothing writes.
            let class = if object.texels.is_some() { StorageClass::Image } else { StorageClass::Buffer };
            object.class.get_or_insert(class);
            let is_resource =
                object.variable == 0 || program.module.decorations_of(object.variable).binding.is_some();
            if is_tracked.get() && is_resource {
                object.add_taint(0, object.bytes.len() as u64, input_taint(0));
            }
        }
    };
    walk_prepared(module, options, most, prepare, |machine, is_complete| {
        let recorder = machine.accessed.as_ref();
        let access_of = |object: u32| {
            let (reads, writes) = recorder.and_then(|all| all.ranges_of(object))?;
            Some(ResourceAccess { reads, writes })
        };
        let is_decided = recorder.is_none_or(|recorder| recorder.has_tainted_address)
            || machine.is_schedule_dependent
            || machine.influence.control != 0
            || machine.influence.sites.values().any(|taint| *taint != 0);
        let is_fixed = is_complete && is_tracked.get() && !is_decided;
        let mut all = AccessedBytes { is_complete, is_fixed, ..AccessedBytes::default() };
        for (variable, slot) in &machine.program.variables {
            let Some(ConcreteValue::Pointer(pointer)) = machine.globals.get(*slot) else { continue };
            let Some((set, binding)) = machine.program.module.descriptor_of(*variable) else { continue };
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
