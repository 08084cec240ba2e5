//! A test as a kernel of WGSL, for the GPU of the visitor through WebGPU.
//!
//! The kernel has at least the order of the test. A test is refused by name if WGSL could order less, since
//! an outcome would then prove nothing about the device. So every outcome of a conforming device is one that
//! the model allows for the test. If WGSL orders more, some outcomes of the test may be unobservable; the
//! answer has the mapping.
//!
//! As in Levine et al., *MC Mutants* (ASPLOS 2023), each invocation runs every thread, each for another
//! instance, so that all instances of a dispatch run concurrently.

#![deny(clippy::wildcard_enum_match_arm)]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use litmus::Observable;
use litmus::test::{
    Access, AccessKind, ArithmeticOperation, Compute, ControlBarrier, Dialect, InstructionKind, LocationId,
    LocationInit, MemoryAccess, Operand, Order, Performer, RegisterId, RegisterInit, RmwOperation,
    ScalarType, Scope, StorageClass, Test, ThreadId,
};
use results::wire::{PlaygroundAnswer, PlaygroundKernel, PlaygroundQuestion, RejectedLine};

use crate::question::{ParsedQuestion, mistake_without_position};

/// Invocations of a workgroup: a power of two that every device has.
const WORKGROUP: u32 = 64;

/// Translates a test.
pub fn translate(question: &PlaygroundQuestion) -> Result<PlaygroundAnswer, Vec<RejectedLine>> {
    let ParsedQuestion { test, .. } = ParsedQuestion::parse(question)?;
    match translate_test(&test) {
        Ok(kernel) => Ok(PlaygroundAnswer::Kernel(kernel)),
        Err(why) => Err(mistake_without_position(format!("WGSL cannot express this test: {why}"))),
    }
}

/// The accesses of a location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LocationUse {
    class: StorageClass,
    is_atomic: bool,
}

/// A translation in progress.
struct Translation<'t> {
    test: &'t Test,
    uses: BTreeMap<LocationId, LocationUse>,
    /// The number of each thread's workgroup among those of an instance.
    groups: Vec<u32>,
    mapping: BTreeSet<&'static str>,
}

/// Returns the kernel of a test.
///
/// # Errors
/// The feature that WGSL lacks.
fn translate_test(test: &Test) -> Result<PlaygroundKernel, String> {
    if test.dialect != Dialect::Vulkan {
        return Err("it is not of the Vulkan dialect".to_owned());
    }
    if !test.system_sync.is_empty() {
        return Err("it orders dispatches (ssw)".to_owned());
    }
    if test.filter.is_some() {
        return Err("it has a filter".to_owned());
    }
    let mut workgroups = BTreeMap::new();
    let mut groups = Vec::new();
    let mut queue_families = BTreeSet::new();
    for thread in &test.threads {
        let placement = thread.place.device_placement().ok_or("a thread runs on the host")?;
        queue_families.insert((placement.queue_family, placement.queue));
        let next = workgroups.len() as u32;
        groups.push(*workgroups.entry(placement.workgroup).or_insert(next));
    }
    if queue_families.len() > 1 {
        return Err("its threads run on several queues".to_owned());
    }
    let mut translation = Translation { test, uses: BTreeMap::new(), groups, mapping: BTreeSet::new() };
    translation.collect_uses()?;
    translation.check_unused()?;
    let segments = translation.translate_segments()?;
    Ok(translation.assemble_kernel(&segments))
}

impl Translation<'_> {
    /// Records how each location is accessed.
    fn collect_uses(&mut self) -> Result<(), String> {
        for (index, thread) in self.test.threads.iter().enumerate() {
            for instruction in &thread.instructions {
                let Some(access) = instruction.kind.access() else { continue };
                let id = access.place.location;
                let location = self.test.location(id);
                let name = &location.name;
                if location.init != LocationInit::Constant(0) {
                    return Err(format!("`{name}` does not start at 0"));
                }
                if location.is_vector()
                    || access.place.scalar.is_some()
                    || location.scalar_type() != ScalarType::U32
                {
                    return Err(format!("`{name}` is not a scalar of type u32"));
                }
                if location.reference.is_some() || location.host {
                    return Err(format!("`{name}` is declared with a kind of memory"));
                }
                let is_atomic = matches!(access.strength, Access::Atomic { .. });
                let used = LocationUse { class: access.place.class, is_atomic };
                if used.class == StorageClass::Workgroup && self.groups.get(index) != Some(&0) {
                    return Err(format!("`{name}` is workgroup memory of several workgroups"));
                }
                if *self.uses.entry(id).or_insert(used) != used {
                    return Err(format!(
                        "`{name}` has atomic and plain accesses; a variable of WGSL has one of them"
                    ));
                }
            }
        }
        Ok(())
    }

    /// Checks that each observed location has a known value if no thread accesses it.
    fn check_unused(&self) -> Result<(), String> {
        for observable in self.test.observables() {
            let Observable::Location(id, _) = observable else { continue };
            let location = self.test.location(id);
            if !self.uses.contains_key(&id) && !matches!(location.init, LocationInit::Constant(_)) {
                return Err(format!(
                    "`{}` is observed, not accessed, and does not start as a number",
                    location.name
                ));
            }
        }
        Ok(())
    }

    /// Returns the code of each thread between its barriers, and the barriers.
    fn translate_segments(&mut self) -> Result<Vec<(Vec<String>, String)>, String> {
        let test = self.test;
        let mut codes = Vec::new();
        let mut common_barriers: Option<Vec<String>> = None;
        for index in 0..test.threads.len() {
            let thread = ThreadId(index as u16);
            let (mut code, mut barriers) = (vec![String::new()], Vec::new());
            for instruction in &test.thread(thread).instructions {
                if let InstructionKind::ControlBarrier(barrier) = &instruction.kind {
                    barriers.push(self.translate_barrier(barrier)?);
                    code.push(String::new());
                } else if let Some(last) = code.last_mut() {
                    *last += &self.translate_statement(thread, &instruction.kind)?;
                }
            }
            if *common_barriers.get_or_insert_with(|| barriers.clone()) != barriers {
                return Err("its threads do not execute the same barriers".to_owned());
            }
            codes.push(code);
        }
        if common_barriers.as_ref().is_some_and(|barriers| !barriers.is_empty())
            && self.groups.iter().any(|group| *group != 0)
        {
            return Err("it has barriers in several workgroups".to_owned());
        }
        let barriers = common_barriers.unwrap_or_default().into_iter().chain([String::new()]).enumerate();
        let segment = |(at, barrier): (usize, String)| {
            (codes.iter().filter_map(|code| code.get(at).cloned()).collect(), barrier)
        };
        Ok(barriers.map(segment).collect())
    }

    /// Returns the statement of a control barrier.
    fn translate_barrier(&mut self, barrier: &ControlBarrier) -> Result<String, String> {
        if barrier.execution_scope != Scope::Workgroup
            || barrier.resource.is_some()
            || barrier.quorum.is_some()
        {
            return Err("it has a barrier that is not for one whole workgroup".to_owned());
        }
        let Some(semantics) = barrier.semantics else {
            self.mapping.insert("a barrier without memory semantics is `workgroupBarrier()`, which orders workgroup memory too");
            return Ok("workgroupBarrier();".to_owned());
        };
        if !matches!(barrier.memory_scope, Scope::Workgroup | Scope::Subgroup | Scope::Invocation) {
            return Err("it has a barrier with a memory scope wider than the workgroup".to_owned());
        }
        let mut statements = Vec::new();
        for class in semantics.classes.iter() {
            statements.push(match class {
                StorageClass::Buffer => "storageBarrier();",
                StorageClass::Workgroup => "workgroupBarrier();",
                StorageClass::Image | StorageClass::Output => {
                    return Err("it has a barrier for images or outputs".to_owned());
                }
            });
        }
        self.mapping.insert("barriers of buffers are `storageBarrier()`, those of workgroup memory `workgroupBarrier()`; both acquire and release");
        Ok(statements.join(" "))
    }

    fn translate_statement(&mut self, thread: ThreadId, kind: &InstructionKind) -> Result<String, String> {
        let refuse = || Err(format!("`{}`", kind.to_text(self.test, thread)));
        match kind {
            InstructionKind::Access(access) => self.translate_access(thread, kind, access),
            InstructionKind::Compute(Compute::Arithmetic { destination, operation, left, right }) => {
                let (left, right) =
                    (self.translate_operand(thread, *left), self.translate_operand(thread, *right));
                let value = match operation {
                    ArithmeticOperation::Add => format!("{left} + {right}"),
                    ArithmeticOperation::Subtract => format!("{left} - {right}"),
                    ArithmeticOperation::Multiply => format!("{left} * {right}"),
                    ArithmeticOperation::And => format!("{left} & {right}"),
                    ArithmeticOperation::Or => format!("{left} | {right}"),
                    ArithmeticOperation::Xor => format!("{left} ^ {right}"),
                    ArithmeticOperation::Minimum => format!("min({left}, {right})"),
                    ArithmeticOperation::Maximum => format!("max({left}, {right})"),
                    ArithmeticOperation::Divide => return refuse(),
                };
                Ok(format!("    {} = {value};\n", self.register_name(thread, *destination)))
            }
            InstructionKind::Fence { .. } => Err(format!(
                "`{}`: WGSL has no memory barrier without a control barrier",
                kind.to_text(self.test, thread)
            )),
            InstructionKind::Flow(_) => Err("it has branches or loops".to_owned()),
            InstructionKind::Compute(Compute::Move { .. } | Compute::Compare { .. })
            | InstructionKind::ControlBarrier(_)
            | InstructionKind::SplitBarrier(_)
            | InstructionKind::Subgroup(_)
            | InstructionKind::System(_)
            | InstructionKind::ShaderCall(_)
            | InstructionKind::Interlock(_) => refuse(),
        }
    }

    fn translate_access(
        &mut self,
        thread: ThreadId,
        kind: &InstructionKind,
        access: &MemoryAccess,
    ) -> Result<String, String> {
        let text = || kind.to_text(self.test, thread);
        if access.performer != Performer::Invocation || access.place.address.is_some() {
            return Err(format!("`{}`", text()));
        }
        match access.strength {
            Access::Atomic { scope, semantics } => {
                if semantics.order != Order::Relaxed {
                    return Err(format!("`{}`: atomics of WGSL are relaxed", text()));
                }
                match scope {
                    Scope::Subgroup | Scope::Workgroup | Scope::QueueFamily => {}
                    Scope::Device => {
                        self.mapping
                            .insert("device scope is queue-family scope, which is the same on one queue");
                    }
                    Scope::Invocation | Scope::ShaderCall | Scope::FragmentInterlock | Scope::CrossDevice => {
                        return Err(format!("`{}`: no such scope", text()));
                    }
                }
                self.mapping.insert(
                    "atomics of buffers have queue-family scope, those of workgroup memory workgroup scope",
                );
            }
            Access::Private | Access::NonPrivate => {
                self.mapping
                    .insert("plain accesses are non-private, and barriers make them available and visible");
            }
            Access::Coherent { scope: Scope::Invocation | Scope::Subgroup | Scope::Workgroup } => {}
            Access::Coherent { .. } => {
                return Err(format!("`{}`: plain accesses of WGSL reach no other workgroup", text()));
            }
        }
        let element = self.location_element(thread, access.place.location, access.place.class)?;
        let is_atomic = matches!(access.strength, Access::Atomic { .. });
        let is_scalar = access.components() == 1;
        let statement = match &access.kind {
            AccessKind::Load(registers) if is_scalar => {
                let register = self.register_name(thread, registers.first());
                match is_atomic {
                    true => format!("{register} = atomicLoad(&{element});"),
                    false => format!("{register} = {element};"),
                }
            }
            AccessKind::Store(values) if is_scalar => {
                let value = self.translate_operand(thread, values.first());
                match is_atomic {
                    true => format!("atomicStore(&{element}, {value});"),
                    false => format!("{element} = {value};"),
                }
            }
            AccessKind::Rmw { destination: Some(destination), operation } => {
                let register = self.register_name(thread, *destination);
                let call = match operation {
                    RmwOperation::Exchange(value) => {
                        format!("atomicExchange(&{element}, {})", self.translate_operand(thread, *value))
                    }
                    RmwOperation::Fetch(operation, value) => {
                        let function = match operation {
                            ArithmeticOperation::Add => "atomicAdd",
                            ArithmeticOperation::Subtract => "atomicSub",
                            ArithmeticOperation::And => "atomicAnd",
                            ArithmeticOperation::Or => "atomicOr",
                            ArithmeticOperation::Xor => "atomicXor",
                            ArithmeticOperation::Minimum => "atomicMin",
                            ArithmeticOperation::Maximum => "atomicMax",
                            ArithmeticOperation::Multiply | ArithmeticOperation::Divide => {
                                return Err(format!("`{}`", text()));
                            }
                        };
                        format!("{function}(&{element}, {})", self.translate_operand(thread, *value))
                    }
                    // It may fail although the values are equal.
                    RmwOperation::CompareExchange { .. } => {
                        return Err(format!("`{}`: compare-exchange of WGSL is weak", text()));
                    }
                };
                format!("{register} = {call};")
            }
            AccessKind::Load(_)
            | AccessKind::Store(_)
            | AccessKind::Rmw { destination: None, .. }
            | AccessKind::Await { .. } => {
                return Err(format!("`{}`", text()));
            }
        };
        Ok(format!("    {statement}\n"))
    }

    /// Returns the element of a location for the instance that a thread executes.
    fn location_element(
        &self,
        thread: ThreadId,
        location: LocationId,
        class: StorageClass,
    ) -> Result<String, String> {
        let (thread, number) = (thread.0, location.0);
        let is_atomic = self.uses.get(&location).is_some_and(|used| used.is_atomic);
        match class {
            StorageClass::Buffer => {
                let buffer = if is_atomic { "memory" } else { "plain" };
                Ok(format!("{buffer}[place(i{thread}, {number}u)]"))
            }
            StorageClass::Workgroup => Ok(format!("shared{number}[i{thread} % {WORKGROUP}u]")),
            StorageClass::Image | StorageClass::Output => Err("it accesses images or outputs".to_owned()),
        }
    }

    fn register_name(&self, thread: ThreadId, register: RegisterId) -> String {
        format!("p{}_{}", thread.0, register.0)
    }

    fn translate_operand(&self, thread: ThreadId, operand: Operand) -> String {
        match operand {
            Operand::Constant(number) => format!("{}u", number as u32),
            Operand::Register(register) => self.register_name(thread, register),
        }
    }

    /// Returns the bindings and the workgroup memory.
    fn declarations(&self) -> String {
        let mut source = format!(
            "// Generated from {}.\n\
             struct Parameters {{ factor: u32, distance: u32, shift: u32, stress: u32 }}\n\
             @group(0) @binding(0) var<storage, read_write> memory: array<atomic<u32>>;\n\
             @group(0) @binding(1) var<storage, read_write> plain: array<u32>;\n\
             @group(0) @binding(2) var<storage, read_write> results: array<u32>;\n\
             @group(0) @binding(3) var<storage, read_write> scratch: array<atomic<u32>>;\n\
             @group(0) @binding(4) var<uniform> parameters: Parameters;\n",
            // A name is one line, and cannot end the comment.
            self.test.name
        );
        for (location, used) in self.uses.iter().filter(|(_, used)| used.class == StorageClass::Workgroup) {
            let element = if used.is_atomic { "atomic<u32>" } else { "u32" };
            let _ = writeln!(source, "var<workgroup> shared{}: array<{element}, {WORKGROUP}>;", location.0);
        }
        source
    }

    /// Writes the stores of the observed values. Returns those that the second dispatch executes.
    fn write_results(&self, source: &mut String) -> String {
        let observables = self.test.observables();
        let count = observables.len();
        let is_workgroup_memory = |location: &LocationId| {
            self.uses.get(location).is_some_and(|used| used.class == StorageClass::Workgroup)
        };
        let is_shared = |observable: &Observable| matches!(observable, Observable::Location(location, _) if is_workgroup_memory(location));
        if observables.iter().any(is_shared) {
            *source += "    workgroupBarrier();\n";
        }
        let mut collect = String::new();
        for (at, observable) in observables.iter().enumerate() {
            match observable {
                Observable::Register(thread, register) => {
                    let (thread, register) = (thread.0, register.0);
                    let _ =
                        writeln!(source, "    results[i{thread} * {count}u + {at}u] = p{thread}_{register};");
                }
                Observable::Location(location, _) => {
                    let used = self.uses.get(location);
                    let is_atomic = used.is_some_and(|used| used.is_atomic);
                    let read = |place: String| match is_atomic {
                        true => format!("atomicLoad(&{place})"),
                        false => place,
                    };
                    if is_workgroup_memory(location) {
                        let value = read(format!("shared{}[i0 % {WORKGROUP}u]", location.0));
                        let _ = writeln!(source, "    results[i0 * {count}u + {at}u] = {value};");
                    } else if used.is_some() {
                        let buffer = if is_atomic { "memory" } else { "plain" };
                        let value = read(format!("{buffer}[place(i, {}u)]", location.0));
                        let _ = writeln!(collect, "    results[i * {count}u + {at}u] = {value};");
                    } else if let LocationInit::Constant(value) = self.test.location(*location).init {
                        let _ = writeln!(collect, "    results[i * {count}u + {at}u] = {}u;", value as u32);
                    }
                }
            }
        }
        collect
    }

    /// Writes the start of the test: the instance that each thread executes, and the registers.
    fn write_instances(&self, source: &mut String) {
        let _ = write!(
            source,
            "\nvar<private> instances: u32;\n\
             // The element of a location: the locations of one instance lie apart.\n\
             fn place(instance: u32, location: u32) -> u32 {{\n\
             \x20   return location * instances + (instance * (2u * location * parameters.factor + 1u)) % instances;\n\
             }}\n\n\
             @compute @workgroup_size({WORKGROUP})\n\
             fn test(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, \
             @builtin(local_invocation_index) local: u32) {{\n\
             \x20   instances = groups.x * {WORKGROUP}u;\n\
             \x20   let lane = local * (2u * parameters.factor + 1u);\n"
        );
        // One instance has its threads in the workgroups that the test names, and in different lanes.
        for (thread, group) in self.groups.iter().enumerate() {
            let _ = writeln!(
                source,
                "    let i{thread} = ((group.x + {group}u * parameters.distance) % groups.x) * {WORKGROUP}u + (lane + {thread}u * parameters.shift) % {WORKGROUP}u;"
            );
        }
        for (index, thread) in self.test.threads.iter().enumerate() {
            for (register, declared) in thread.registers.iter().enumerate() {
                let value = match declared.init {
                    RegisterInit::Constant(number) => number as u32,
                    // Every location starts at 0, and addresses are refused where they are used.
                    RegisterInit::ValueOf(_) | RegisterInit::AddressOf(_) => 0,
                };
                let _ = writeln!(source, "    var p{index}_{register} = {value}u;");
            }
        }
    }

    fn assemble_kernel(&self, segments: &[(Vec<String>, String)]) -> PlaygroundKernel {
        let test = self.test;
        let mut source = self.declarations();
        self.write_instances(&mut source);
        source += "    for (var k = 0u; k < parameters.stress * (group.x % 2u); k++) {\n        atomicAdd(&scratch[(local * 16u + k) % 1024u], 1u);\n    }\n";
        for (codes, barrier) in segments {
            codes.iter().for_each(|code| source += code);
            if !barrier.is_empty() {
                let _ = writeln!(source, "    {barrier}");
            }
        }
        let collect = self.write_results(&mut source);
        let _ = write!(
            source,
            "}}\n\n// Runs after the test, in a dispatch that sees everything.\n\
             @compute @workgroup_size({WORKGROUP})\n\
             fn collect(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {{\n\
             \x20   instances = groups.x * {WORKGROUP}u;\n\x20   let i = id.x;\n{collect}}}\n"
        );
        PlaygroundKernel {
            source,
            workgroup_size: WORKGROUP,
            workgroups_of_instance: self.groups.iter().max().map_or(1, |last| last + 1),
            locations: test.locations.len() as u32,
            observables: test.observables().iter().map(|one| test.observable_name(*one)).collect(),
            mapping: self.mapping.iter().map(|sentence| (*sentence).to_owned()).collect(),
        }
    }
}
