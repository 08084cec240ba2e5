//! Prints a test as a GLSL compute shader with `GL_KHR_memory_scope_semantics`: one instance, one invocation
//! per thread.
//!
//! Long because each feature that GLSL cannot express is refused by name where it would be printed.
//!
//! A test with interlocked sections becomes a fragment shader: threads that name one section are the
//! fragments of a pixel, in the order of the columns. A memory name becomes a buffer or a shared variable, a
//! register a local variable. Registers in the question are stored to a result buffer at the end of their
//! thread. Jumps become structured control flow.

#![deny(clippy::wildcard_enum_match_arm)]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::ops::Range;

use crate::comparison::Comparison;
use crate::condition::{Condition, QuestionKind, Term};
use crate::convert::ConvertError;
use crate::system::{InterlockEnd, InterlockOrder};
use crate::test::{
    Access, AccessKind, ArithmeticOperation, Compute, ControlBarrier, Dialect, Flow, Id, IgnoredClasses,
    InstructionKind, LabelId, Location, LocationId, LocationInit, MemoryAccess, Operand, Order, Performer,
    Reference, RegisterId, RmwOperation, ScalarType, Scope, Semantics, StorageClass, Test, Thread, ThreadId,
};

/// A shader with the parameters of its dispatch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GlslShader {
    /// The shader.
    pub source: String,
    /// Workgroups of the dispatch; for fragments, pixels and fragments per pixel.
    pub grid: [u32; 3],
    /// Invocations per subgroup; `None` for fragments.
    pub subgroup_size: Option<u32>,
    /// A condition that holds in every final state, in the names of the shader: the question or its negation.
    pub claim: Option<String>,
    /// The buffer at each binding; empty for memory of workgroups.
    pub buffers: Vec<GlslBuffer>,
}

/// Prints a test as GLSL.
///
/// # Errors
///
/// Features that GLSL cannot express, or that this printer does not support.
pub fn to_glsl(test: &Test) -> Result<GlslShader, ConvertError> {
    let layout = ThreadLayout::for_test(test, false)?;
    print_shader(&layout, &GlslPrinter { test, names: location_names(test, false)?, instances: None })
}

/// The stage of a shader that counts violations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountingStage {
    /// Each thread is an invocation, in its workgroup.
    Compute,
    /// Each thread is a fragment of a rectangle: a row for each thread, and a column for each instance.
    Fragment,
}

/// Prints a shader that runs many instances of a test in one dispatch or draw and counts violations of its claim.
///
/// The last thread of an instance that ends acquires what the others released, and evaluates the claim. The buffer at
/// the last binding has the words of [`CountWord`]. Each memory name and register has an element for each instance.
///
/// # Errors
///
/// As for [`to_glsl`], or if the claim is about memory that this thread cannot read.
pub fn to_counting_glsl(
    test: &Test,
    instances: u32,
    stage: CountingStage,
) -> Result<GlslShader, ConvertError> {
    let layout = ThreadLayout {
        is_fragments: stage == CountingStage::Fragment,
        ..ThreadLayout::for_test(test, true)?
    };
    refuse_if(layout.sections.is_some(), "instances of interlocked sections")?;
    let mut names = location_names(test, true)?;
    refuse_if(
        layout.is_fragments
            && (layout.workgroups.iter().any(|threads| threads.len() > 1)
                || names.iter().any(|name| name.shared)),
        "workgroups of fragments",
    )?;
    names.iter_mut().filter(|name| !name.shared).for_each(|name| {
        name.text = match name.is_image {
            true => format!("{}, {TEXEL}", name.text.trim_end_matches(".value")),
            false => format!("{}{SLOT}", name.text),
        };
    });
    let printer = GlslPrinter { test, names, instances: Some(instances) };
    let accesses = test.threads.iter().flat_map(|thread| &thread.instructions);
    let accesses = accesses.filter_map(|instruction| instruction.kind.access());
    let private: BTreeSet<LocationId> = accesses
        .filter(|access| access.strength == Access::Private)
        .map(|access| access.place.location)
        .collect();
    for location in printer.observed_locations() {
        refuse_if(
            private.contains(&location)
                || printer.names[usize::from(location.0)].shared
                || printer.names[usize::from(location.0)].is_image,
            "a count of final values of private memory, workgroup memory or images",
        )?;
    }
    print_shader(&layout, &printer)
}

/// A buffer of 32-bit words, or an image of such texels, with one initial value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GlslBuffer {
    /// The format of an image with one row.
    pub image_format: Option<&'static str>,
    /// Its length in words.
    pub words: u32,
    /// The initial value of each word.
    pub initial: u32,
}

/// The words of the buffer with the verdict of [`to_counting_glsl`]; then follows one for each instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountWord {
    /// The number of instances that ended in a state that the claim excludes.
    Violations = 0,
    /// The number of instances that ended.
    Finished = 1,
}

/// The index of the elements of an instance.
const SLOT: &str = "[slot]";
/// The texel of an instance.
const TEXEL: &str = "texel";
/// The arguments of relaxed atomic instructions.
const RELAXED: &str = "gl_ScopeDevice, gl_StorageSemanticsNone, gl_SemanticsRelaxed";

fn print_shader(layout: &ThreadLayout, printer: &GlslPrinter<'_>) -> Result<GlslShader, ConvertError> {
    let test = printer.test;
    let threads = (0..test.threads.len())
        .map(|thread| printer.thread_segments(thread))
        .collect::<Result<Vec<_>, _>>()?;
    let claim = match &test.question {
        None => None,
        Some(question) => {
            let condition = printer.condition_text(&question.condition)?;
            let not = if printer.instances.is_some() { "!" } else { "not " };
            Some(match question.kind {
                QuestionKind::Forall => condition,
                QuestionKind::Exists | QuestionKind::NotExists | QuestionKind::Final => {
                    format!("{not}({condition})")
                }
            })
        }
    };
    let mut source = String::from("#version 450\n#pragma use_vulkan_memory_model\n");
    source += "#extension GL_KHR_memory_scope_semantics : require\n";
    if printer.names.iter().any(|name| name.shared) {
        source += "#extension GL_EXT_null_initializer : require\n";
    }
    match layout.sections {
        Some(order) => {
            let order = match order {
                InterlockOrder::Ordered => "ordered",
                InterlockOrder::Unordered => "unordered",
            };
            source += "#extension GL_ARB_fragment_shader_interlock : require\n";
            let _ = writeln!(source, "layout(pixel_interlock_{order}) in;");
        }
        None if layout.is_fragments => source += "layout(location = 0) out vec4 color;\n",
        None => {
            if threads.iter().flatten().any(|segment| segment.end_scope() == Some(Scope::Subgroup)) {
                source += "#extension GL_KHR_shader_subgroup_basic : require\n";
            }
            let _ = writeln!(source, "layout(local_size_x = {}) in;", layout.local_size);
        }
    }
    printer.write_declarations(&mut source);
    let observed = printer.observed_registers();
    if !observed.is_empty() {
        let (binding, length) = (test.locations.len(), printer.array_length());
        let member = |(thread, register): &(ThreadId, RegisterId)| {
            format!("uint {}{length};", printer.register_name(*thread, *register))
        };
        let members = observed.iter().map(member).collect::<Vec<_>>().join(" ");
        let _ =
            writeln!(source, "layout(set = 0, binding = {binding}) buffer Result {{ {members} }} result;");
    }
    if let (Some(count), Some(claim)) = (printer.instances, &claim) {
        let binding = test.locations.len() + usize::from(!observed.is_empty());
        let (groups, threads) = (layout.workgroups.len(), test.threads.len());
        // Fragments of one instance are far from each other.
        let indices = match layout.is_fragments {
            true => format!(
                "uint group = uint(gl_FragCoord.y);\nuint slot = (uint(gl_FragCoord.x) + group * {}u) % {count}u;\n",
                count / 2
            ),
            false => format!(
                "uint slot = gl_WorkGroupID.x / {groups}u;\nuint group = gl_WorkGroupID.x % {groups}u;\n"
            ),
        };
        let has_image = printer.names.iter().any(|name| name.is_image);
        let texel = if has_image { format!("ivec2 {TEXEL} = ivec2(slot, 0);\n") } else { String::new() };
        let _ = write!(
            source,
            "layout(set = 0, binding = {binding}) buffer Verdict {{ uint violations; uint finished; uint ended[{count}]; }} \
             verdict;\n{indices}{texel}\n\
             void finish() {{\n    uint before = atomicAdd(verdict.ended[slot], 1u, gl_ScopeDevice, gl_StorageSemanticsBuffer,\n        \
             gl_SemanticsAcquireRelease | gl_SemanticsMakeAvailable | gl_SemanticsMakeVisible);\n    \
             if (before == {threads}u - 1u) {{\n        if (!({claim})) {{\n            \
             atomicAdd(verdict.violations, 1u, {RELAXED});\n        }}\n        \
             atomicAdd(verdict.finished, 1u, {RELAXED});\n    }}\n}}\n"
        );
    }
    // The code of a segment of a thread; the last segment also stores the observed registers.
    let body = |thread: usize, segment: usize| {
        let id = ThreadId(thread as u16);
        let mut body = threads[thread].get(segment)?.text.clone();
        if segment + 1 == threads[thread].len() {
            for (_, register) in observed.iter().filter(|(of, _)| *of == id) {
                let (name, to) = (printer.register_name(id, *register), printer.register_name(id, *register));
                let _ = match printer.instances {
                    None => writeln!(body, "result.{to} = {name};"),
                    Some(_) => writeln!(body, "atomicStore(result.{to}{SLOT}, {name}, {RELAXED});"),
                };
            }
            if printer.instances.is_some() && claim.is_some() {
                body += "finish();\n";
            }
        }
        Some(body).filter(|body| !body.is_empty())
    };
    source += "\nvoid main() {\n";
    source += &match layout.sections {
        Some(_) => layout.fragment_code(&body),
        None if layout.is_fragments => layout.counted_fragment_code(&body),
        None => {
            let group = if printer.instances.is_some() { "group" } else { "gl_WorkGroupID.x" };
            layout.workgroup_code(&threads, group, &body)?
        }
    };
    source += "}\n";
    let groups = layout.workgroups.len() as u32 * printer.instances.unwrap_or(1);
    let (grid, subgroup_size) = match layout.sections {
        Some(_) => ([groups, 1, layout.local_size], None),
        None if layout.is_fragments => {
            ([printer.instances.unwrap_or(1), layout.workgroups.len() as u32, 1], None)
        }
        None => ([groups, 1, 1], Some(layout.subgroup_size)),
    };
    let count = printer.instances.unwrap_or(1);
    let location_buffer = |(location, name): (&Location, &GlslName)| {
        let initial = if let LocationInit::Constant(initial) = location.init { initial as u32 } else { 0 };
        let image_format = name.is_image.then_some(if name.ty == "int" { "R32_SINT" } else { "R32_UINT" });
        GlslBuffer { image_format, words: if name.shared { 0 } else { count }, initial }
    };
    let mut buffers: Vec<GlslBuffer> =
        test.locations.iter().zip(&printer.names).map(location_buffer).collect();
    if !observed.is_empty() {
        let words = count * observed.len() as u32;
        buffers.push(GlslBuffer { image_format: None, words, initial: 0 });
    }
    if printer.instances.is_some() {
        buffers.push(GlslBuffer { image_format: None, words: count + 2, initial: 0 });
    }
    Ok(GlslShader { source, grid, subgroup_size, claim, buffers })
}

impl GlslShader {
    /// Returns the file name extension of the shader.
    pub fn file_extension(&self) -> &'static str {
        if self.subgroup_size.is_some() { "comp" } else { "frag" }
    }
}

/// Refuses a test for a feature.
fn refuse<T>(what: impl Into<String>) -> Result<T, ConvertError> {
    Err(ConvertError::NotExpressible { syntax: "GLSL", what: what.into() })
}

/// Refuses a test for a feature that it has.
fn refuse_if(has: bool, what: &str) -> Result<(), ConvertError> {
    if has { refuse(what) } else { Ok(()) }
}

/// The smallest and the largest common subgroups, in invocations. A larger one joins threads of two subgroups of a
/// test, which can only hide a violation.
const MIN_COUNTING_LANES: u32 = 4;
const MAX_COUNTING_LANES: u32 = 64;

/// The mapping of invocations to threads.
struct ThreadLayout {
    /// For each workgroup, its threads with their local index; for each pixel, its threads with their
    /// primitive.
    workgroups: Vec<Vec<(u32, usize)>>,
    local_size: u32,
    subgroup_size: u32,
    /// The order of the interlocked sections of fragments; `None` without sections.
    sections: Option<InterlockOrder>,
    /// Each thread is a fragment without a section.
    is_fragments: bool,
}

impl ThreadLayout {
    /// Maps invocations to the threads of a test. A counting shader does not choose the size of its subgroups, and
    /// its idle invocations take part in control barriers, which adds no outcome.
    fn for_test(test: &Test, is_counting: bool) -> Result<ThreadLayout, ConvertError> {
        refuse_if(test.dialect == Dialect::Hsa, "the HSA dialect: convert it to litmus first")?;
        refuse_if(!test.system_sync.is_empty(), "order between dispatches (ssw)")?;
        refuse_if(test.filter.is_some(), "filters")?;
        let mut queues = BTreeSet::new();
        let mut all: BTreeMap<u32, BTreeMap<u32, Vec<usize>>> = BTreeMap::new();
        for (index, thread) in test.threads.iter().enumerate() {
            let place = thread.place.device_placement().map_or_else(|| refuse("host threads"), Ok)?;
            queues.insert((place.queue_family, place.queue));
            all.entry(place.workgroup).or_default().entry(place.subgroup).or_default().push(index);
        }
        refuse_if(queues.len() > 1, "several queues")?;
        if let Some(order) = test.interlock_order() {
            return ThreadLayout::for_fragments(test, order);
        }
        let sizes = || all.values().flat_map(|subgroups| subgroups.values().map(Vec::len));
        let largest = sizes().max().unwrap_or(1) as u32;
        refuse_if(
            is_counting && largest > MIN_COUNTING_LANES,
            "more threads in a subgroup than each device has invocations there",
        )?;
        let has_several_subgroups = all.values().any(|subgroups| subgroups.len() > 1);
        let subgroup_size = if is_counting && has_several_subgroups { MAX_COUNTING_LANES } else { largest };
        let workgroups: Vec<Vec<(u32, usize)>> = all
            .values()
            .map(|subgroups| {
                let lanes = subgroups.values().enumerate().flat_map(|(subgroup, threads)| {
                    let first = subgroup as u32 * subgroup_size;
                    threads.iter().enumerate().map(move |(lane, thread)| (first + lane as u32, *thread))
                });
                lanes.collect()
            })
            .collect();
        let last = workgroups.iter().flatten().map(|(lane, _)| lane + 1).max().unwrap_or(1);
        // An idle invocation would be missing at a workgroup barrier, or would take part in a subgroup
        // barrier.
        let has_barrier = |thread: usize, scope: Scope| {
            test.threads[thread].instructions.iter().any(|instruction| {
                matches!(&instruction.kind, InstructionKind::ControlBarrier(barrier) if barrier.execution_scope == scope)
            })
        };
        let has_idle_invocations = |threads: &Vec<(u32, usize)>| {
            let any_has_barrier =
                |scope: Scope| threads.iter().any(|(_, thread)| has_barrier(*thread, scope));
            let are_full = |subgroups: &BTreeMap<u32, Vec<usize>>| {
                subgroups.values().all(|threads| threads.len() == subgroup_size as usize)
            };
            any_has_barrier(Scope::Workgroup) && threads.len() != last as usize
                || any_has_barrier(Scope::Subgroup) && !all.values().all(are_full)
        };
        refuse_if(
            !is_counting && workgroups.iter().any(has_idle_invocations),
            "control barriers of workgroups or subgroups of different sizes",
        )?;
        Ok(ThreadLayout { workgroups, local_size: last, subgroup_size, sections: None, is_fragments: false })
    }

    /// Maps fragments to threads: threads that name one section share a pixel, the others have one each.
    fn for_fragments(test: &Test, order: InterlockOrder) -> Result<ThreadLayout, ConvertError> {
        let mut pixels: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        let mut unsectioned = Vec::new();
        for (index, thread) in test.threads.iter().enumerate() {
            let ends = thread.instructions.iter().filter_map(|instruction| {
                if let InstructionKind::Interlock(interlock) = &instruction.kind {
                    Some((interlock.end, interlock.section.as_str()))
                } else {
                    None
                }
            });
            match ends.collect::<Vec<_>>().as_slice() {
                [] => unsectioned.push(vec![index]),
                [(InterlockEnd::Begin, section), (InterlockEnd::End, other)] if section == other => {
                    pixels.entry(section).or_default().push(index);
                }
                _ => return refuse("interlocked sections that are not executed exactly once"),
            }
        }
        let workgroups: Vec<Vec<(u32, usize)>> =
            pixels.into_values().chain(unsectioned).map(|threads| (0..).zip(threads).collect()).collect();
        let local_size = workgroups.iter().map(Vec::len).max().unwrap_or(1) as u32;
        Ok(ThreadLayout {
            workgroups,
            local_size,
            subgroup_size: 1,
            sections: Some(order),
            is_fragments: false,
        })
    }

    /// Prints the code of fragments: before, within and after their sections, which all of them enter.
    fn fragment_code(&self, body: &dyn Fn(usize, usize) -> Option<String>) -> String {
        let mut source = String::new();
        for segment in 0..3 {
            for (pixel, members) in self.workgroups.iter().enumerate() {
                for (primitive, thread) in members {
                    if let Some(body) = body(*thread, segment) {
                        let who = format!("uint(gl_FragCoord.x) == {pixel} && gl_PrimitiveID == {primitive}");
                        let _ = write!(
                            source,
                            "    if ({who}) {{\n{}    }}\n",
                            indent_lines(&indent_lines(&body))
                        );
                    }
                }
            }
            source += match segment {
                0 => "    beginInvocationInterlockARB();\n",
                1 => "    endInvocationInterlockARB();\n",
                _ => "",
            };
        }
        source
    }

    /// Prints the code of fragments that run one thread of an instance each.
    fn counted_fragment_code(&self, body: &dyn Fn(usize, usize) -> Option<String>) -> String {
        let mut source = "    color = vec4(1.0);\n".to_owned();
        for (group, members) in self.workgroups.iter().enumerate() {
            let code = members.iter().filter_map(|(_, thread)| body(*thread, 0)).collect::<String>();
            let _ = write!(
                source,
                "    if (group == {group}) {{\n{}    }}\n",
                indent_lines(&indent_lines(&code))
            );
        }
        source
    }

    /// Prints the code of the invocations of workgroups, split at their common barriers.
    fn workgroup_code(
        &self,
        threads: &[Vec<CodeSegment>],
        group: &str,
        body: &dyn Fn(usize, usize) -> Option<String>,
    ) -> Result<String, ConvertError> {
        let mut source = String::new();
        for (workgroup, members) in self.workgroups.iter().enumerate() {
            let _ = writeln!(source, "    if ({group} == {workgroup}) {{");
            let mut subgroups: BTreeMap<u32, Vec<(u32, usize)>> = BTreeMap::new();
            for (lane, thread) in members {
                subgroups.entry(lane / self.subgroup_size).or_default().push((*lane, *thread));
            }
            // The next segment of each subgroup.
            let mut next: BTreeMap<u32, usize> = subgroups.keys().map(|subgroup| (*subgroup, 0)).collect();
            loop {
                let mut workgroup_barrier = None;
                for (subgroup, lanes) in &subgroups {
                    let at = next.entry(*subgroup).or_default();
                    loop {
                        for (lane, thread) in lanes {
                            if let Some(body) = body(*thread, *at) {
                                let _ = writeln!(source, "        if (gl_LocalInvocationIndex == {lane}) {{");
                                let _ = writeln!(
                                    source,
                                    "{}        }}",
                                    indent_lines(&indent_lines(&indent_lines(&body)))
                                );
                            }
                        }
                        let mut barriers = lanes
                            .iter()
                            .filter_map(|(_, thread)| threads[*thread].get(*at)?.barrier.as_ref());
                        let barrier = barriers.next();
                        *at += 1;
                        match barrier {
                            Some(barrier) if barrier.execution_scope == Scope::Subgroup => {
                                let statement = control_barrier_text(barrier)?;
                                let size = self.subgroup_size;
                                let _ = match subgroups.len() {
                                    1 => writeln!(source, "        {statement}"),
                                    _ => writeln!(
                                        source,
                                        "        if (gl_LocalInvocationIndex / {size} == {subgroup}) {{ {statement} }}"
                                    ),
                                };
                            }
                            Some(barrier) => {
                                workgroup_barrier = Some(barrier);
                                break;
                            }
                            None => break,
                        }
                    }
                }
                let Some(barrier) = workgroup_barrier else { break };
                let _ = writeln!(source, "        {}", control_barrier_text(barrier)?);
            }
            source += "    }\n";
        }
        Ok(source)
    }
}

/// The GLSL form of a location.
struct GlslName {
    /// The expression for it.
    text: String,
    shared: bool,
    is_image: bool,
    /// The qualifier that all of its plain accesses need.
    qualifier: &'static str,
    ty: &'static str,
}

/// Reserved words that tests use as names.
const RESERVED: [&str; 23] = [
    "buffer", "common", "data", "filter", "flat", "half", "in", "input", "out", "output", "result", "sample",
    "shared", "smooth", "this", "lock", "main", "slot", "group", "verdict", "finish", "texel", "color",
];

/// Returns the names of locations; `has_initial` if the caller fills buffers with their initial values.
fn location_names(test: &Test, has_initial: bool) -> Result<Vec<GlslName>, ConvertError> {
    let mut strengths: BTreeMap<LocationId, BTreeSet<&'static str>> = BTreeMap::new();
    let mut classes: BTreeMap<LocationId, BTreeSet<StorageClass>> = BTreeMap::new();
    let mut workgroups: BTreeMap<LocationId, BTreeSet<Option<u32>>> = BTreeMap::new();
    let instructions = test.threads.iter().flat_map(|thread| {
        let workgroup = thread.place.device_placement().map(|place| place.workgroup);
        thread.instructions.iter().map(move |instruction| (workgroup, instruction))
    });
    for (workgroup, access) in
        instructions.filter_map(|(of, instruction)| Some((of, instruction.kind.access()?)))
    {
        let location = access.place.location;
        workgroups.entry(location).or_default().insert(workgroup);
        classes.entry(location).or_default().insert(access.place.class);
        let qualifier = match access.strength {
            Access::Private => "",
            Access::NonPrivate => "nonprivate ",
            Access::Coherent { scope } => match scope {
                Scope::Subgroup => "subgroupcoherent ",
                Scope::Workgroup => "workgroupcoherent ",
                Scope::QueueFamily => "queuefamilycoherent ",
                Scope::Device => "devicecoherent ",
                Scope::Invocation | Scope::ShaderCall | Scope::FragmentInterlock | Scope::CrossDevice => {
                    return refuse(
                        "coherent accesses of the scopes of invocations, shader calls and interlocks",
                    );
                }
            },
            Access::Atomic { .. } => continue,
        };
        strengths.entry(location).or_default().insert(qualifier);
    }
    let mut taken = BTreeSet::new();
    let mut names = Vec::new();
    for (index, location) in test.locations.iter().enumerate() {
        let id = LocationId(index as u16);
        let name = &location.name;
        let class = match (location.reference, classes.get(&id).and_then(|classes| classes.first())) {
            (Some(Reference::Address), _) => return refuse("memory accessed by device address"),
            (Some(reference), _) => reference.storage_class(),
            (None, Some(class)) => *class,
            (None, None) => StorageClass::Buffer,
        };
        let (shared, is_image) = match class {
            StorageClass::Buffer => (false, false),
            StorageClass::Workgroup => (true, false),
            // With many instances, each has a texel.
            StorageClass::Image if has_initial => (false, true),
            StorageClass::Image => return refuse("storage images (not supported by the printer)"),
            StorageClass::Output => return refuse("outputs of a compute shader"),
        };
        match location.init {
            LocationInit::Constant(0) => {}
            LocationInit::Constant(_) if has_initial && !shared => {}
            LocationInit::AliasOf(_) => return refuse("several references to one storage"),
            LocationInit::Constant(_)
            | LocationInit::Components(_)
            | LocationInit::CopyOf(_)
            | LocationInit::AddressOf(_) => return refuse("initial values other than 0"),
            LocationInit::Undefined => return refuse("undefined initial values"),
        }
        let ty = match location.scalar_type() {
            ScalarType::U32 => "uint",
            ScalarType::I32 => "int",
            ScalarType::U8
            | ScalarType::U16
            | ScalarType::U64
            | ScalarType::I8
            | ScalarType::I16
            | ScalarType::I64 => return refuse("integers other than 32 bits (not supported by the printer)"),
            ScalarType::F32 | ScalarType::F64 => return refuse("floats (not supported by the printer)"),
        };
        refuse_if(location.is_vector(), "vectors (not supported by the printer)")?;
        refuse_if(location.host || location.noncoherent, "properties of memory")?;
        let strengths = strengths.get(&id).cloned().unwrap_or_default();
        let qualifier = strengths.first().copied().unwrap_or("");
        refuse_if(
            strengths.len() > 1,
            "plain accesses of one variable that differ in how they are coherent",
        )?;
        refuse_if(
            shared && workgroups.get(&id).is_some_and(|workgroups| workgroups.len() > 1),
            "memory shared by workgroups outside a buffer",
        )?;
        refuse_if(
            shared && !strengths.is_empty() && qualifier != "workgroupcoherent ",
            "shared memory that is not coherent within its workgroup",
        )?;
        let mut text: String = name.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
        let bad =
            text.is_empty() || text.starts_with(|c: char| c.is_ascii_digit()) || text.starts_with("gl_");
        while bad && !text.starts_with("m_")
            || RESERVED.contains(&text.as_str())
            || taken.contains(&text)
            || text.contains("__")
        {
            text = format!("m_{}", text.replace("__", "_"));
        }
        taken.insert(text.clone());
        let text = if shared { text } else { format!("{text}.value") };
        names.push(GlslName { text, shared, is_image, qualifier: if shared { "" } else { qualifier }, ty });
    }
    Ok(names)
}

/// The code of a thread up to a control barrier or an end of an interlocked section.
struct CodeSegment {
    text: String,
    barrier: Option<ControlBarrier>,
}

impl CodeSegment {
    /// Returns the execution scope of the barrier at its end.
    fn end_scope(&self) -> Option<Scope> {
        self.barrier.as_ref().map(|barrier| barrier.execution_scope)
    }
}

struct GlslPrinter<'a> {
    test: &'a Test,
    names: Vec<GlslName>,
    /// The number of instances, if there are several.
    instances: Option<u32>,
}

/// The target of a jump out of a block, and the statement for it.
type ExitJump = (LabelId, &'static str);

impl GlslPrinter<'_> {
    /// Returns the length of declarations that have an element for each instance.
    fn array_length(&self) -> String {
        self.instances.map(|count| format!("[{count}]")).unwrap_or_default()
    }

    fn write_declarations(&self, source: &mut String) {
        for (binding, name) in self.names.iter().enumerate() {
            let GlslName { text, shared, is_image, qualifier, ty } = name;
            let _ = if *shared {
                writeln!(source, "shared {ty} {text} = {{}};")
            } else if *is_image {
                let (name, sign) = (text.split(',').next().unwrap_or_default(), &ty[..1]);
                let format = if sign == "i" { "r32i" } else { "r32ui" };
                writeln!(
                    source,
                    "layout(set = 0, binding = {binding}, {format}) {qualifier}uniform {sign}image2D {name};"
                )
            } else {
                let instance = text.trim_end_matches(SLOT).trim_end_matches(".value");
                let length = self.array_length();
                writeln!(
                    source,
                    "layout(set = 0, binding = {binding}) {qualifier}buffer Memory{binding} {{ {ty} value{length}; }} {instance};"
                )
            };
        }
        for (index, thread) in self.test.threads.iter().enumerate() {
            let id = ThreadId(index as u16);
            let names: Vec<String> = (0..thread.registers.len())
                .map(|register| format!("{} = 0u", self.register_name(id, RegisterId(register as u16))))
                .collect();
            if !names.is_empty() {
                let _ = writeln!(source, "uint {};", names.join(", "));
            }
        }
    }

    fn register_name(&self, thread: ThreadId, register: RegisterId) -> String {
        let of = self.test.threads.get(usize::from(thread.0));
        let name =
            of.and_then(|of| of.registers.get(usize::from(register.0))).map_or("", |register| &register.name);
        let number = of.map_or(0, |of| of.number);
        let name: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
        format!("P{number}_{name}{}", if name.is_empty() { register.0.to_string() } else { String::new() })
    }

    /// Returns the registers that the question mentions.
    fn observed_registers(&self) -> BTreeSet<(ThreadId, RegisterId)> {
        self.observed_terms(|term| match term {
            Term::Register(thread, register) => Some((*thread, *register)),
            Term::Location(..) | Term::Constant(_) | Term::Address(_) => None,
        })
    }

    /// Returns the memory names that the question mentions.
    fn observed_locations(&self) -> BTreeSet<LocationId> {
        self.observed_terms(|term| match term {
            Term::Location(location, _) => Some(*location),
            Term::Register(..) | Term::Constant(_) | Term::Address(_) => None,
        })
    }

    fn observed_terms<T: Ord>(&self, select: impl Fn(&Term) -> Option<T>) -> BTreeSet<T> {
        let mut found = BTreeSet::new();
        if let Some(question) = &self.test.question {
            question.condition.for_each_term(&mut |term| found.extend(select(term)));
        }
        found
    }

    /// Prints a condition as a claim; with several instances, as an expression of the shader.
    fn condition_text(&self, condition: &Condition) -> Result<String, ConvertError> {
        let [not, and, or] = if self.instances.is_some() { ["!", "&&", "||"] } else { ["not ", "and", "or"] };
        let load = |place: String| match self.instances {
            None => place,
            Some(_) => format!("atomicLoad({place}, {RELAXED})"),
        };
        Ok(match condition {
            Condition::True => "0 == 0".to_owned(),
            Condition::Not(inner) => format!("{not}({})", self.condition_text(inner)?),
            Condition::And(left, right) | Condition::Or(left, right) => {
                let sign = if matches!(condition, Condition::And(..)) { and } else { or };
                format!("({} {sign} {})", self.condition_text(left)?, self.condition_text(right)?)
            }
            Condition::Compare { left, comparison, right } => {
                let side = |term: &Term| match term {
                    Term::Register(thread, register) => {
                        let slot = if self.instances.is_some() { SLOT } else { "" };
                        Ok(load(format!("result.{}{slot}", self.register_name(*thread, *register))))
                    }
                    Term::Location(location, _) => {
                        let name = self.names.get(usize::from(location.0));
                        Ok(load(name.map(|name| name.text.clone()).unwrap_or_default()))
                    }
                    Term::Constant(number) if self.instances.is_some() => Ok(format!("{}u", *number as u32)),
                    Term::Constant(number) => Ok(number.to_string()),
                    Term::Address(_) => refuse("questions about addresses"),
                };
                format!("{} {} {}", side(left)?, comparison.sign(), side(right)?)
            }
        })
    }

    /// Returns the code of a thread, split at its control barriers.
    fn thread_segments(&self, index: usize) -> Result<Vec<CodeSegment>, ConvertError> {
        let thread = &self.test.threads[index];
        let id = ThreadId(index as u16);
        refuse_if(
            !thread.guarded_blocks().is_empty(),
            "subgroup barriers and operations under a branch (not supported by the printer)",
        )?;
        self.check_uniform_barriers(index)?;
        let mut segments = Vec::new();
        let mut start = 0;
        for (at, instruction) in thread.instructions.iter().enumerate() {
            let barrier = match segment_end(&instruction.kind) {
                Some(barrier) => barrier.cloned(),
                None => continue,
            };
            let text = self.block_statements(id, thread, start..at, &[])?;
            segments.push(CodeSegment { text, barrier });
            start = at + 1;
        }
        let text = self.block_statements(id, thread, start..thread.instructions.len(), &[])?;
        segments.push(CodeSegment { text, barrier: None });
        Ok(segments)
    }

    /// Returns an error if a barrier is not the same instruction for all participants.
    fn check_uniform_barriers(&self, index: usize) -> Result<(), ConvertError> {
        let barriers = |thread: &Thread, scopes: &[Scope]| -> Vec<ControlBarrier> {
            let all = thread.instructions.iter().filter_map(|instruction| segment_end(&instruction.kind)?);
            all.filter(|barrier| scopes.contains(&barrier.execution_scope)).cloned().collect()
        };
        let own_thread = &self.test.threads[index];
        for (shared_scope, scopes) in [
            (Scope::Workgroup, &[Scope::Workgroup][..]),
            (Scope::Subgroup, &[Scope::Workgroup, Scope::Subgroup]),
        ] {
            let others = self
                .test
                .threads
                .iter()
                .filter(|other| own_thread.place.shares_scope(other.place, shared_scope));
            for other in others {
                refuse_if(
                    barriers(own_thread, scopes) != barriers(other, scopes),
                    "control barriers that differ between the invocations of an instance",
                )?;
            }
        }
        Ok(())
    }

    /// Prints statements for a range of instructions.
    fn block_statements(
        &self,
        id: ThreadId,
        thread: &Thread,
        range: Range<usize>,
        exits: &[ExitJump],
    ) -> Result<String, ConvertError> {
        let unstructured = "jumps that do not form a loop or condition";
        let label_at = |at: usize| match thread.instructions.get(at).map(|i| &i.kind) {
            Some(InstructionKind::Flow(Flow::Label(label))) => Some(*label),
            _ => None,
        };
        let position =
            |label: LabelId| (0..thread.instructions.len()).find(|at| label_at(*at) == Some(label));
        let mut text = String::new();
        let mut at = range.start;
        while at < range.end {
            let kind = &thread.instructions[at].kind;
            let InstructionKind::Flow(flow) = kind else {
                text += &self.statement_text(id, kind)?;
                at += 1;
                continue;
            };
            match flow {
                Flow::Label(label) => {
                    let back_jump = (at + 1..range.end).rev().find(|later| {
                        let kind = &thread.instructions[*later].kind;
                        let InstructionKind::Flow(Flow::Goto(target) | Flow::Branch { target, .. }) = kind
                        else {
                            return false;
                        };
                        target == label
                    });
                    let Some(back_jump) = back_jump else {
                        at += 1;
                        continue;
                    };
                    let break_targets = (back_jump + 1..).map_while(label_at).map(|label| (label, "break;"));
                    let mut inner: Vec<ExitJump> = break_targets.collect();
                    let kind = &thread.instructions[back_jump].kind;
                    let end = if let InstructionKind::Flow(Flow::Branch { relation, left, right, .. }) = kind
                    {
                        format!("while ({});", self.comparison_text(id, *relation, *left, *right))
                    } else {
                        inner.push((*label, "continue;"));
                        "while (true);".to_owned()
                    };
                    let body = self.block_statements(id, thread, at + 1..back_jump, &inner)?;
                    let _ = write!(text, "do {{\n{}}} {end}\n", indent_lines(&body));
                    at = back_jump + 1;
                }
                Flow::Goto(target) => {
                    if let Some((_, statement)) = exits.iter().find(|(label, _)| label == target) {
                        let _ = writeln!(text, "{statement}");
                    } else if position(*target).is_none_or(|position| position < at || position > range.end)
                        || (at + 1..position(*target).unwrap_or(at))
                            .any(|between| label_at(between).is_none())
                    {
                        return refuse(unstructured);
                    }
                    at += 1;
                }
                Flow::Branch { relation, left, right, target } => {
                    let condition = self.comparison_text(id, *relation, *left, *right);
                    if let Some((_, statement)) = exits.iter().find(|(label, _)| label == target) {
                        let _ = writeln!(text, "if ({condition}) {statement}");
                        at += 1;
                        continue;
                    }
                    let join = position(*target)
                        .filter(|join| *join > at && *join <= range.end)
                        .map_or_else(|| refuse(unstructured), Ok)?;
                    // An if-else: the skipped code ends with a jump over the other case.
                    let else_end = match thread.instructions.get(join.saturating_sub(1)).map(|i| &i.kind) {
                        Some(InstructionKind::Flow(Flow::Goto(over))) if join > at + 1 => {
                            position(*over).filter(|over| *over > join && *over <= range.end)
                        }
                        _ => None,
                    };
                    let negated = self.comparison_text(id, relation.opposite(), *left, *right);
                    match else_end {
                        Some(else_end) => {
                            let (then, other) = (at + 1..join - 1, join..else_end);
                            let then = self.block_statements(id, thread, then, exits)?;
                            let other = self.block_statements(id, thread, other, exits)?;
                            let _ = write!(
                                text,
                                "if ({negated}) {{\n{}}} else {{\n{}}}\n",
                                indent_lines(&then),
                                indent_lines(&other)
                            );
                            at = else_end;
                        }
                        None => {
                            let then = self.block_statements(id, thread, at + 1..join, exits)?;
                            let _ = write!(text, "if ({negated}) {{\n{}}}\n", indent_lines(&then));
                            at = join;
                        }
                    }
                }
                Flow::BranchIf { .. } => return refuse("branches of HSA"),
            }
        }
        Ok(text)
    }

    fn operand_text(&self, thread: ThreadId, operand: Operand) -> String {
        match operand {
            Operand::Constant(number) => format!("{}u", number as u32),
            Operand::Register(register) => self.register_name(thread, register),
        }
    }

    fn comparison_text(
        &self,
        thread: ThreadId,
        relation: Comparison,
        left: Operand,
        right: Operand,
    ) -> String {
        let (left, right) = (self.operand_text(thread, left), self.operand_text(thread, right));
        match relation {
            Comparison::Equal | Comparison::NotEqual => format!("{left} {} {right}", relation.sign()),
            Comparison::Less | Comparison::LessOrEqual | Comparison::Greater | Comparison::GreaterOrEqual => {
                format!("int({left}) {} int({right})", relation.sign())
            }
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "what is not listed is refused by name")]
    fn statement_text(&self, thread: ThreadId, kind: &InstructionKind) -> Result<String, ConvertError> {
        Ok(match kind {
            InstructionKind::Access(access) => format!("{};\n", self.access_text(thread, access)?),
            InstructionKind::Fence { scope, semantics } => {
                format!("memoryBarrier({});\n", scope_and_semantics(*scope, *semantics)?)
            }
            InstructionKind::Compute(compute) => match compute {
                Compute::Arithmetic { destination, operation, left, right } => {
                    let (left, right) = (self.operand_text(thread, *left), self.operand_text(thread, *right));
                    let infix = |sign: &str| format!("{left} {sign} {right}");
                    let value = match operation {
                        ArithmeticOperation::Add => infix("+"),
                        ArithmeticOperation::Subtract => infix("-"),
                        ArithmeticOperation::Multiply => infix("*"),
                        ArithmeticOperation::And => infix("&"),
                        ArithmeticOperation::Or => infix("|"),
                        ArithmeticOperation::Xor => infix("^"),
                        ArithmeticOperation::Minimum => format!("min({left}, {right})"),
                        ArithmeticOperation::Maximum => format!("max({left}, {right})"),
                        ArithmeticOperation::Divide => {
                            return refuse("a quotient by zero, which is 0 for the model");
                        }
                    };
                    format!("{} = {value};\n", self.register_name(thread, *destination))
                }
                Compute::Move { destination, value } => {
                    format!(
                        "{} = {};\n",
                        self.register_name(thread, *destination),
                        self.operand_text(thread, *value)
                    )
                }
                Compute::Compare { .. } => return refuse("comparisons of HSA"),
            },
            InstructionKind::ControlBarrier(_) => return refuse("control barriers under conditions"),
            _ => return refuse(kind.name()),
        })
    }

    fn access_text(&self, thread: ThreadId, access: &MemoryAccess) -> Result<String, ConvertError> {
        let place = &access.place;
        let Some(name) = self.names.get(place.location.index()) else { return Ok(String::new()) };
        let whole = place.offset == 0
            && place.scalar.is_none_or(|ty| ty == self.test.location(place.location).scalar_type());
        refuse_if(
            !whole || access.is_vector(),
            "accesses to parts of a location (not supported by the printer)",
        )?;
        refuse_if(place.address.is_some(), "addresses that depend on a register")?;
        refuse_if(
            access.performer == Performer::Cooperative,
            "cooperative accesses (not supported by the printer)",
        )?;
        let at = &name.text;
        let typed = |value: Operand| {
            let value = self.operand_text(thread, value);
            if name.ty == "int" { format!("int({value})") } else { value }
        };
        let taken = |destination: RegisterId, value: String| {
            let value = if name.ty == "int" { format!("uint({value})") } else { value };
            format!("{} = {value}", self.register_name(thread, destination))
        };
        let order = match access.strength {
            Access::Atomic { scope, semantics } => Some(scope_and_semantics(scope, semantics)?),
            Access::Private | Access::NonPrivate | Access::Coherent { .. } => None,
        };
        let atomic = if name.is_image { "imageAtomic" } else { "atomic" };
        Ok(match (access.kind, order) {
            (AccessKind::Load(to), None) if name.is_image => taken(to.first(), format!("imageLoad({at}).x")),
            (AccessKind::Load(to), None) => taken(to.first(), at.clone()),
            (AccessKind::Load(to), Some(order)) => taken(to.first(), format!("{atomic}Load({at}, {order})")),
            (AccessKind::Store(value), None) if name.is_image => {
                format!("imageStore({at}, {}vec4({}))", &name.ty[..1], typed(value.first()))
            }
            (AccessKind::Store(value), None) => format!("{at} = {}", typed(value.first())),
            (AccessKind::Store(value), Some(order)) => {
                format!("{atomic}Store({at}, {}, {order})", typed(value.first()))
            }
            (AccessKind::Rmw { destination, operation }, order) => {
                let order = order.unwrap_or_default();
                let call = match operation {
                    RmwOperation::Exchange(value) => {
                        format!("{atomic}Exchange({at}, {}, {order})", typed(value))
                    }
                    RmwOperation::CompareExchange { compare, value, unequal } => {
                        let (classes, semantics) = semantics_words(unequal)?;
                        let (compare, value) = (typed(compare), typed(value));
                        format!("{atomic}CompSwap({at}, {compare}, {value}, {order}, {classes}, {semantics})")
                    }
                    RmwOperation::Fetch(operation, value) => {
                        let function = match operation {
                            ArithmeticOperation::Add => "Add",
                            ArithmeticOperation::And => "And",
                            ArithmeticOperation::Or => "Or",
                            ArithmeticOperation::Xor => "Xor",
                            ArithmeticOperation::Minimum => "Min",
                            ArithmeticOperation::Maximum => "Max",
                            ArithmeticOperation::Subtract
                            | ArithmeticOperation::Multiply
                            | ArithmeticOperation::Divide => {
                                return refuse("atomic differences, products and quotients");
                            }
                        };
                        format!("{atomic}{function}({at}, {}, {order})", typed(value))
                    }
                };
                match destination {
                    Some(destination) => taken(destination, call),
                    None => call,
                }
            }
            (AccessKind::Await { .. }, _) => return refuse("awaits of HSA"),
        })
    }
}

/// Returns the control barrier if the instruction ends a segment; `Some(None)` for the end of a section.
fn segment_end(kind: &InstructionKind) -> Option<Option<&ControlBarrier>> {
    if let InstructionKind::ControlBarrier(barrier) = kind {
        return Some(Some(barrier));
    }
    matches!(kind, InstructionKind::Interlock(_)).then_some(None)
}

fn indent_lines(text: &str) -> String {
    text.lines().map(|line| format!("    {line}\n")).collect()
}

fn scope_word(scope: Scope) -> Result<&'static str, ConvertError> {
    Ok(match scope {
        Scope::Invocation => "gl_ScopeInvocation",
        Scope::Subgroup => "gl_ScopeSubgroup",
        Scope::Workgroup => "gl_ScopeWorkgroup",
        Scope::QueueFamily => "gl_ScopeQueueFamily",
        Scope::Device => "gl_ScopeDevice",
        Scope::ShaderCall => return refuse("the scope of shader calls in a compute shader"),
        Scope::FragmentInterlock => return refuse("the scope of interlocks"),
        Scope::CrossDevice => return refuse("the scope of all devices"),
    })
}

/// Returns the words for storage classes and for the order.
fn semantics_words(semantics: Semantics) -> Result<(String, String), ConvertError> {
    refuse_if(semantics.ignored != IgnoredClasses::NONE, "storage classes of semantics that are ignored")?;
    refuse_if(semantics.sequential, "sequentially consistent operations")?;
    let mut classes = Vec::new();
    for class in semantics.classes.iter() {
        classes.push(match class {
            StorageClass::Buffer => "gl_StorageSemanticsBuffer",
            StorageClass::Workgroup => "gl_StorageSemanticsShared",
            StorageClass::Image => "gl_StorageSemanticsImage",
            StorageClass::Output => "gl_StorageSemanticsOutput",
        });
    }
    let mut words = vec![match semantics.order {
        Order::Relaxed => "gl_SemanticsRelaxed",
        Order::Acquire => "gl_SemanticsAcquire",
        Order::Release => "gl_SemanticsRelease",
        Order::AcquireRelease => "gl_SemanticsAcquireRelease",
    }];
    if semantics.make_available {
        words.push("gl_SemanticsMakeAvailable");
    }
    if semantics.make_visible {
        words.push("gl_SemanticsMakeVisible");
    }
    let classes = if classes.is_empty() { "gl_StorageSemanticsNone".to_owned() } else { classes.join(" | ") };
    Ok((classes, words.join(" | ")))
}

fn scope_and_semantics(scope: Scope, semantics: Semantics) -> Result<String, ConvertError> {
    let (classes, words) = semantics_words(semantics)?;
    Ok(format!("{}, {classes}, {words}", scope_word(scope)?))
}

fn control_barrier_text(barrier: &ControlBarrier) -> Result<String, ConvertError> {
    refuse_if(barrier.resource.is_some() || barrier.quorum.is_some(), "named barriers")?;
    refuse_if(
        !matches!(barrier.execution_scope, Scope::Workgroup | Scope::Subgroup),
        "control barriers of scopes other than workgroup and subgroup",
    )?;
    let order = scope_and_semantics(barrier.memory_scope, barrier.semantics.unwrap_or(Semantics::RELAXED))?;
    Ok(format!("controlBarrier({}, {order});", scope_word(barrier.execution_scope)?))
}
