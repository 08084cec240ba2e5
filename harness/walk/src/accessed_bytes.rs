//! The bytes of each resource that one walk of a kernel accesses.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use litmus::StorageClass;
use rspirv::spirv::{Op, StorageClass as GlobalClass};
use spirv_reader::{GlobalVariable, SpirvInstruction, SpirvModule, SpirvType};

use super::access_recorder::{AccessRecorder, ByteRange, RecordedAccess};
use super::report::GridSpot;
use super::state::Interpreter;
use super::trial::walk_prepared;
use super::value::{ConcreteValue, input_taint};
use entry_point::assumed::{plain_bindings, written_members};
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
    /// False if the resources are too large to find what decides the accesses: more than [`MAX_TAINTED_BYTES`].
    pub is_tracked: bool,
    /// The resources whose contents may decide what is accessed, by descriptor set and binding; `None` if memory behind addresses may,
    /// or the schedule.
    ///
    /// By taint: no other contents reached a branch, an address or an operand that decides control flow.
    pub deciding: Option<BTreeSet<(u32, u32)>>,
}

impl AccessedBytes {
    /// Returns true if no contents decide what is accessed, and the schedule does not.
    pub fn is_fixed(&self) -> bool {
        self.deciding.as_ref().is_some_and(BTreeSet::is_empty)
    }
}

/// Upper bound on bytes whose taint is tracked, which takes eight times as much memory.
pub const MAX_TAINTED_BYTES: usize = 1 << 25;

/// The global memory that an entry point can access, by the variables that its functions use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntryAccesses {
    /// Set and binding of each resource, with true if it may be written.
    pub resources: BTreeMap<(u32, u32), bool>,
    /// The resources that may be accessed other than by atomic operations.
    pub plain: BTreeSet<(u32, u32)>,
    /// Locations of stage inputs that are loaded, unless several entry points have the name.
    pub inputs: BTreeSet<u32>,
    /// True if the module can access memory by address.
    pub has_addresses: bool,
    /// True if push constants are used.
    pub has_push_constants: bool,
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
    let starts = pending.clone();
    let (mut unwritten, mut has_roots) = (BTreeSet::new(), true);
    while let Some(function) = pending.pop() {
        if !reached.insert(function) {
            continue;
        }
        for instruction in module.functions.get(&function).into_iter().flat_map(|function| &function.code) {
            let operands = module.operands_of(instruction);
            has_roots &= !is_variable_pointer(module, instruction);
            if instruction.op == Op::FunctionCall {
                pending.extend(operands.first());
            }
            let is_load = matches!(instruction.op, Op::Load | Op::AccessChain | Op::InBoundsAccessChain);
            // An operand that is a number may equal an id: the resources are a superset.
            for (index, id) in operands.iter().enumerate() {
                let Some(variable) = module.variables.get(id) else { continue };
                all.has_push_constants |= variable.class == GlobalClass::PushConstant;
                if variable.class == GlobalClass::Input && is_load && index == 0 && is_unique {
                    all.inputs.extend(module.decorations_of(*id).location);
                }
                if let Some(descriptor) = module.descriptor_of(*id) {
                    *all.resources.entry(descriptor).or_default() |= !is_read_only(module, *id, variable);
                    if matches!(variable.class, GlobalClass::StorageBuffer | GlobalClass::Uniform) {
                        unwritten.insert(descriptor);
                    }
                }
            }
        }
    }
    if !has_roots {
        all.plain.extend(all.resources.keys());
        return Some(all);
    }
    for function in starts {
        all.plain.extend(plain_bindings(module, function));
        let written = written_members(module, function, true);
        unwritten.retain(|place| !written.iter().any(|(written, _)| written == place));
    }
    for place in unwritten {
        all.resources.insert(place, false);
    }
    Some(all)
}

/// Returns true if an instruction has a pointer to a resource as its result that is not part of one variable.
fn is_variable_pointer(module: &SpirvModule, instruction: &SpirvInstruction) -> bool {
    let ty = module.types.get(&instruction.ty);
    matches!(ty, Some(SpirvType::Pointer { class: GlobalClass::StorageBuffer | GlobalClass::Uniform, .. }))
        && !matches!(
            instruction.op,
            Op::AccessChain | Op::InBoundsAccessChain | Op::CopyObject | Op::Variable | Op::FunctionParameter
        )
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

/// Gives read-only objects a class: accesses to them skip the race check, which records. They can take part in it.
fn record_read_only(machine: &mut Interpreter<'_>) {
    for object in &mut machine.objects {
        let class = if object.texels.is_some() { StorageClass::Image } else { StorageClass::Buffer };
        object.class.get_or_insert(class);
    }
}

/// Walks a kernel once, with at most `most` steps, and returns its first read and write of a byte of a resource.
///
/// # Errors
/// See [`super::analyze_grid`]; limits are not errors.
pub fn accesses_of_byte(
    module: &SpirvModule,
    options: &AnalysisOptions,
    at: (u32, u32),
    byte: u64,
    most: u64,
) -> Result<Vec<GridSpot>, Refusal> {
    let prepare = |machine: &mut Interpreter<'_>| {
        record_read_only(machine);
        let mut variables = machine.program.variables.iter();
        let watched = variables.find_map(|(variable, slot)| match machine.globals.get(*slot)? {
            ConcreteValue::Pointer(pointer) if module.descriptor_of(*variable) == Some(at) => {
                Some((pointer.object, byte))
            }
            _ => None,
        });
        machine.accessed = Some(AccessRecorder::watching(watched));
    };
    walk_prepared(module, options, most, prepare, |machine, _| {
        let found = machine.accessed.iter().flat_map(|recorder| &recorder.found);
        let spots = |access: &RecordedAccess| {
            let (line, place) = machine.program.source_place(access.site);
            let spot = |writes| GridSpot { line, place, invocation: access.invocation, writes: Some(writes) };
            let reads = access.reads.then(|| spot(false));
            reads.into_iter().chain(access.writes.then(|| spot(true)))
        };
        found.flat_map(|access| spots(access).collect::<Vec<_>>()).collect()
    })
}

/// Walks a kernel once, with at most `most` steps, and returns the bytes that it accesses.
///
/// Another schedule may access other bytes unless [`AccessedBytes::is_fixed`]. Filtered samples are left out.
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
        record_read_only(machine);
        for (number, object) in machine.objects.iter_mut().enumerate() {
            let is_resource =
                object.variable == 0 || program.module.decorations_of(object.variable).binding.is_some();
            if is_tracked.get() && is_resource {
                object.add_taint(0, object.bytes.len() as u64, input_taint(number));
            }
        }
    };
    walk_prepared(module, options, most, prepare, |machine, is_complete| {
        let recorder = machine.accessed.as_ref();
        let access_of = |object: u32| {
            let (reads, writes) = recorder.and_then(|all| all.ranges_of(object))?;
            Some(ResourceAccess { reads, writes })
        };
        let sites = machine.influence.sites.values().fold(0, |all, taint| all | taint);
        let taint = recorder.map_or(0, |recorder| recorder.address_taint) | machine.influence.control | sites;
        // The deciding inputs that are not found among the resources.
        let mut unexplained = taint;
        let mut decides = |object: u32| {
            unexplained &= !input_taint(object as usize);
            taint & input_taint(object as usize) != 0
        };
        let is_known =
            is_complete && is_tracked.get() && !machine.is_schedule_dependent && recorder.is_some();
        let mut all = AccessedBytes {
            is_complete,
            is_tracked: is_tracked.get(),
            deciding: is_known.then(BTreeSet::new),
            ..AccessedBytes::default()
        };
        for (variable, slot) in &machine.program.variables {
            let Some(ConcreteValue::Pointer(pointer)) = machine.globals.get(*slot) else { continue };
            let Some((set, binding)) = machine.program.module.descriptor_of(*variable) else { continue };
            let one = [pointer.object];
            let objects = machine.descriptors.get(&pointer.object).map_or(&one[..], |array| &array.objects);
            if let Some(deciding) = &mut all.deciding
                && objects.iter().filter(|object| decides(**object)).count() > 0
            {
                deciding.insert((set, binding));
            }
            for (element, object) in (0..).zip(objects) {
                if let Some(access) = access_of(*object) {
                    all.bindings.insert((set, binding, element), access);
                }
            }
        }
        for (number, object) in (0..).zip(&machine.objects).filter(|(_, object)| object.variable == 0) {
            if decides(number) {
                all.deciding = None;
            }
            if let Some(access) = access_of(number) {
                all.addresses.insert(object.name.clone(), access);
            }
        }
        if unexplained != 0 {
            all.deciding = None;
        }
        all
    })
}
