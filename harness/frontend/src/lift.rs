//! Lifts a kernel with its grid and inputs to litmus tests.
//!
//! Long because the shared context, the fixpoint iteration and the options belong together.
//!
//! The lifter executes every invocation symbolically ([`crate::walk`]) and iterates to a fixpoint over the
//! values that shared memory may hold: each iteration reads values that the previous one may have stored. The
//! result over-approximates the kernel's executions within the unrolling bound. Unspecified inputs get
//! candidate values ([`crate::tried`]), one test for each choice.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use arithmetic::mask;
use litmus::Test;
use rspirv::spirv::StorageClass;

use crate::assemble;
use crate::assumed::{AssumedInput, UnsetOverride};
use crate::error::{ONE_WORKGROUP, Problem, Refusal, SourcePosition, malformed};
use crate::grid::Sampler;
use crate::inputs::{AddressInput, ImageInput};
use crate::launch::{Launch, reflected};
use crate::layout::{Specialized, is_storage_image, known_number};
use crate::open::OpenMemory;
use crate::order::storage_class_of;
use crate::overwritten::overwritten;
use crate::question::ResolvedQuestion;
use crate::section::Sections;
use crate::stage;
use crate::state::PathState;
use crate::tried::{self, Assignment};
use crate::until::Until;
use crate::value::{MemoryCell, NumberDomain, ObjectId, UndefOrigin};
use crate::walk::{Knowledge, Round, Touch, Walk, Walked};
use spirv_reader::annotations::{Formula, Initial};
use spirv_reader::{SpirvModule, SpirvOperation, SpirvType, Stage};

/// Upper bound on the invocations of a grid: the engine's bound on threads.
pub(crate) const MAX_INVOCATIONS: usize = 16;
/// Upper bound on the fixpoint iterations.
const MAX_ROUNDS: usize = 400;
/// Upper bound on the paths of all invocations in all iterations.
const MAX_PATHS: usize = 1 << 16;
/// Default bound on the iterations of loops that depend on read values.
pub const DEFAULT_UNROLL: u32 = 2;
/// Size of a buffer whose content is not given.
pub(crate) const DEFAULT_BYTES: u64 = 64 * 1024;

/// Options of an analysis: the grid, the inputs, the claim and the bounds.
#[derive(Clone, Debug, Default)]
pub struct AnalysisOptions {
    /// The entry point; may be omitted if there is only one.
    pub entry: Option<String>,
    /// Workgroups of the dispatch. Default: the annotations, else one.
    pub grid: Option<[u32; 3]>,
    /// Invocations per subgroup. Default: the annotations, else the whole workgroup.
    pub subgroup_size: Option<u32>,
    /// Specialization constants by `SpecId`.
    pub specialization: HashMap<u32, u64>,
    /// Bytes of push constants by offset.
    pub push: BTreeMap<u64, u8>,
    /// Numbers of push constants by the name of a member; see [`resolve_names`](crate::resolve_names).
    pub named_push: BTreeMap<String, Vec<String>>,
    /// Inputs of vertices and fragments by location, concatenated for all invocations and repeated if too
    /// short. Other inputs are unknown.
    pub stage_inputs: BTreeMap<u32, Vec<u8>>,
    /// Buffer contents by the name of the buffer; see [`resolve_names`](crate::resolve_names).
    pub named_buffers: BTreeMap<String, Vec<u8>>,
    /// Buffer contents by set and binding.
    pub buffers: BTreeMap<(u32, u32), Vec<u8>>,
    /// Descriptors that are bound to the buffer of another one, by set and binding; see
    /// [`read_bound_module`](crate::read_bound_module).
    pub aliases: BTreeMap<(u32, u32), (u32, u32)>,
    /// The pipeline-overridable constants whose values the compiler assumed.
    pub unset_overrides: Vec<UnsetOverride>,
    /// Images by set and binding.
    pub images: BTreeMap<(u32, u32), ImageInput>,
    /// Samplers by set and binding, including those of combined image samplers.
    pub samplers: BTreeMap<(u32, u32), Sampler>,
    /// Buffers that addresses point to.
    pub addresses: Vec<AddressInput>,
    /// The inputs that a case file gives, without their contents.
    pub case_inputs: Option<Box<AnalysisOptions>>,
    /// The inputs that no option supplies. The other fields hold assumed values for them, and a walk tracks
    /// what these decide.
    pub assumed: Vec<AssumedInput>,
    /// Bound on the iterations of every loop. Default: only loops that depend on read values are bounded, by
    /// [`AnalysisOptions::open_bodies`].
    pub unroll: Option<u32>,
    /// Bound on the iterations of loops that depend on read values. Default: [`DEFAULT_UNROLL`].
    pub open_bodies: Option<u32>,
    /// A claim about every final state.
    pub assertion: Option<Formula>,
    /// True to ignore the annotated filter.
    pub ignore_filter: bool,
    /// True to emit accesses of unshared cells too, for callers that change the test and query the model
    /// again.
    pub keep_all: bool,
    /// True to keep every write to a buffer observable, for callers that enumerate final contents.
    pub keep_final: bool,
    /// True to execute without checking accesses, to measure its cost.
    pub skip_race_checks: bool,
    /// Number of schedules to explore even after a finding. Default: a few, until something is found.
    pub schedules: Option<u64>,
    /// Seed of the random schedules.
    pub seed: u64,
    /// The invocations to lift, as if no others existed. Default: all.
    pub only_invocations: Vec<InvocationId>,
    /// When to give up with [`Problem::OutOfTime`]. Default: never.
    pub deadline: Option<Until>,
    /// The memory that others write during the kernel, and what they write. Default: none.
    pub open: Option<OpenMemory>,
}

/// The position of an invocation in the grid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InvocationId {
    /// `WorkgroupId`.
    pub workgroup: [u32; 3],
    /// `LocalInvocationId`.
    pub local: [u32; 3],
    pub(crate) workgroup_index: u32,
    pub(crate) local_index: u32,
    pub(crate) stage: Stage,
}

/// The class of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FindingKind {
    /// Two unordered conflicting accesses.
    Race,
    /// A race between lanes of one subgroup that only lockstep execution would order.
    Lockstep,
    /// A write happens before a read, but is not available or not visible to it.
    UnpublishedRead,
    /// Some invocations of the execution scope do not execute an instance of a control barrier.
    DivergentBarrier,
    /// An access beyond the end of an array.
    OutOfBounds,
    /// Something depends on an uninitialized value.
    UninitialisedRead,
    /// An instruction without a defined result is executed.
    UndefinedBehaviour,
    /// An invocation never ends.
    Hang,
    /// A claim about the final contents does not hold.
    Assertion,
}

impl FindingKind {
    /// Returns the name in output.
    pub fn name(self) -> &'static str {
        match self {
            FindingKind::Race => "race",
            FindingKind::Lockstep => "lockstep",
            FindingKind::UnpublishedRead => "unpublished-read",
            FindingKind::DivergentBarrier => "divergent-barrier",
            FindingKind::OutOfBounds => "out-of-bounds",
            FindingKind::UninitialisedRead => "uninitialised-read",
            FindingKind::UndefinedBehaviour => "undefined-behaviour",
            FindingKind::Hang => "hang",
            FindingKind::Assertion => "assertion",
        }
    }

    /// Returns true for races and for reads of unpublished writes.
    pub fn is_race(self) -> bool {
        matches!(self, FindingKind::Race | FindingKind::Lockstep | FindingKind::UnpublishedRead)
    }
}

/// A source position of a finding, with the invocation that executes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spot {
    /// Index of the invocation.
    pub thread: u16,
    /// Index of the source line; 0 if unknown.
    pub line: u32,
    /// The position in the module.
    pub place: SourcePosition,
    /// For an access, true if it writes.
    pub access: Option<bool>,
}

/// A defect that the lifter found without a model.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LiftFinding {
    /// The class of the defect.
    pub kind: FindingKind,
    /// The description, as one sentence.
    pub message: String,
    /// The positions involved.
    pub at: Vec<Spot>,
}

/// A litmus test of a kernel for one choice of unspecified values.
#[derive(Clone, Debug)]
pub struct LiftedCase {
    /// The test.
    pub test: Test,
    /// The source position of each instruction, by thread.
    pub origins: Vec<Vec<Spot>>,
    /// The source name of each location.
    pub names: Vec<String>,
    /// The cell of each location.
    pub(crate) cells: Vec<MemoryCell>,
    /// The finding for each suspicion mark, valid if some execution reaches the mark.
    pub(crate) suspicions: Vec<LiftFinding>,
    /// The values that each location may hold.
    pub(crate) domains: Vec<NumberDomain>,
    /// The locations that hold values without a symbolic representation.
    pub(crate) opaque: BTreeSet<MemoryCell>,
}

/// A kernel as litmus tests.
#[derive(Clone, Debug)]
pub struct Lifted {
    /// The name of the entry point.
    pub entry: String,
    /// One test for each choice of unspecified values; usually one.
    pub cases: Vec<LiftedCase>,
    /// True if other choices of unspecified values are possible.
    pub sampled: bool,
    /// The invocations, in thread order.
    pub invocations: Vec<InvocationId>,
    /// Invocations per subgroup.
    pub subgroup_size: u32,
    /// The defects found while lifting.
    pub findings: Vec<LiftFinding>,
    /// The question as its author wrote it.
    pub question: Option<String>,
    /// Assumptions made while reading the module.
    pub notes: Vec<String>,
}

/// For each function and loop header, the variables that are dead there; filled on demand.
type DeadVariables = RefCell<HashMap<(u32, u32), Rc<HashSet<u32>>>>;

/// The context that all symbolic executors share.
pub(crate) struct LiftContext<'a> {
    pub specialized: &'a Specialized<'a>,
    pub stage: Stage,
    /// See [`AnalysisOptions::stage_inputs`].
    pub stage_inputs: &'a BTreeMap<u32, Vec<u8>>,
    pub grid: [u32; 3],
    /// The interlock mode of the entry point.
    pub sections: Option<Sections>,
    pub local_size: [u32; 3],
    pub subgroup_size: u32,
    pub unroll: Option<u32>,
    /// Bound on the iterations of loops that depend on read values.
    pub unroll_open: u32,
    /// When to give up.
    pub deadline: Option<Until>,
    /// True to emit accesses of unshared cells too.
    pub keep_all: bool,
    /// True if final buffer contents are queried.
    pub keep_final: bool,
    /// The memory that others write.
    pub open: Option<&'a OpenMemory>,
    /// Cells that the question refers to.
    pub observed: BTreeSet<MemoryCell>,
    assignment: Assignment,
    inputs: HashMap<u32, &'a Initial>,
    buffers: HashMap<u32, &'a [u8]>,
    push: BTreeMap<u64, u64>,
    push_bytes: &'a BTreeMap<u64, u8>,
    /// Images by set and binding.
    pub images: &'a BTreeMap<(u32, u32), ImageInput>,
    annotated: bool,
    canonical: HashMap<u32, u32>,
    loops: HashMap<u32, HashMap<u32, (u32, usize)>>,
    dead_variables: DeadVariables,
}

impl<'a> LiftContext<'a> {
    pub fn module(&self) -> &'a SpirvModule {
        self.specialized.module
    }

    /// Returns the variables that are dead at a loop header, or `None` without such a function.
    pub fn dead_variables(&self, function: u32, header: u32) -> Option<Rc<HashSet<u32>>> {
        let code = self.module().functions.get(&function)?;
        let mut known = self.dead_variables.borrow_mut();
        let dead = known.entry((function, header));
        Some(dead.or_insert_with(|| Rc::new(overwritten(self.module(), code, header))).clone())
    }

    pub fn loops_of(&self, function: u32) -> &HashMap<u32, (u32, usize)> {
        static EMPTY: std::sync::OnceLock<HashMap<u32, (u32, usize)>> = std::sync::OnceLock::new();
        self.loops.get(&function).unwrap_or_else(|| EMPTY.get_or_init(HashMap::new))
    }

    pub fn result_type(&self, function: u32, id: u32) -> Option<u32> {
        let module = self.module();
        if let Some(ty) = module.functions.get(&function).and_then(|function| function.types.get(&id)) {
            return Some(*ty);
        }
        module.variable_types.get(&id).copied()
    }

    /// Returns the result id of the current instruction; 0 if it has none.
    pub fn instruction_result(&self, state: &PathState) -> u32 {
        let Some(frame) = state.frames.last() else { return 0 };
        let function = self.module().functions.get(&frame.function);
        function.and_then(|function| function.code.get(frame.at)).map_or(0, |instruction| instruction.result)
    }

    /// Returns the label of a segment. Segments count down from the top, so they never meet the labels of
    /// paths.
    #[allow(clippy::unused_self)]
    pub fn segment_label(&self, index: usize) -> u16 {
        u16::MAX - index.min(usize::from(u16::MAX)) as u16
    }

    /// Returns true if a cell lies in a buffer, whose final content is observable.
    pub fn in_buffer(&self, cell: MemoryCell) -> bool {
        self.class_of(cell.object.variable) == Some(litmus::StorageClass::Buffer)
    }

    /// Returns the memory that others write, if a cell belongs to it.
    pub fn open_memory(&self, cell: MemoryCell) -> Option<&'a OpenMemory> {
        let decorations = self.module().decorations_of(cell.object.variable);
        let binding = decorations.binding.map(|binding| (decorations.set.unwrap_or(0), binding));
        self.open.filter(|open| open.contains(binding, cell.offset, cell.bytes))
    }

    /// Returns the storage class of a shared variable; `None` for private ones and for outputs of graphics
    /// stages.
    pub fn class_of(&self, variable: u32) -> Option<litmus::StorageClass> {
        let declared = self.module().variables.get(&variable)?;
        let class = declared.class;
        if class == StorageClass::UniformConstant && is_storage_image(self.module(), declared.ty) {
            return Some(litmus::StorageClass::Image);
        }
        let own = class == StorageClass::Output && self.stage != Stage::Compute;
        storage_class_of(class).filter(|_| !own)
    }

    /// Returns the first variable with the same binding.
    pub fn canonical_variable(&self, variable: u32) -> u32 {
        self.canonical.get(&variable).copied().unwrap_or(variable)
    }

    /// Returns true if another variable has the same binding.
    pub fn is_shared_binding(&self, variable: u32) -> bool {
        self.canonical.values().filter(|first| **first == variable).count() > 1
    }

    pub fn invocation_count(&self) -> u32 {
        self.local_size.iter().fold(1, |product: u32, size| product.saturating_mul(*size))
    }

    /// Returns the value chosen for an unspecified one; 0 by default.
    pub fn assigned_value(&self, origin: UndefOrigin) -> u64 {
        self.assignment.get(&origin).copied().unwrap_or(0)
    }

    /// Returns the value chosen for unspecified initial memory.
    pub fn assigned_initial(&self, cell: MemoryCell) -> u64 {
        self.assigned_value(UndefOrigin::from_cell(cell)) & mask(cell.bytes.saturating_mul(8))
    }

    pub fn is_built_in(&self, variable: u32) -> bool {
        let input =
            |v: &spirv_reader::GlobalVariable| v.initializer == 0 && v.class != StorageClass::Workgroup;
        self.module().decorations_of(variable).built_in.is_some()
            && self.module().variables.get(&variable).is_some_and(input)
    }

    pub fn is_descriptor_array(&self, variable: u32, ty: u32) -> bool {
        is_descriptor_array(self.module(), variable, ty)
    }

    /// Returns the push constants at an offset, if known.
    pub fn push_constant(&self, offset: u64) -> Option<u64> {
        if let Some(value) = self.push.get(&offset) {
            return Some(*value);
        }
        if self.push_bytes.is_empty() && self.annotated {
            return None;
        }
        let bytes = (0..8).map(|at| self.push_bytes.get(&offset.saturating_add(at)).copied().unwrap_or(0));
        Some(bytes.enumerate().fold(0, |all, (at, byte)| all | u64::from(byte) << (8 * at)))
    }

    /// Returns the initial content of a cell; `None` if unspecified.
    pub fn initial_value(&self, cell: MemoryCell) -> Result<Option<u64>, Problem> {
        let module = self.module();
        let variable = cell.object.variable;
        let Some(declared) = module.variables.get(&variable).copied() else { return Ok(None) };
        let mut ty = declared.ty;
        if cell.object.instance > 0 && self.is_descriptor_array(variable, ty) {
            ty = self.specialized.part_of(ty, 0)?.ty;
        }
        if let Some(initial) = self.inputs.get(&variable) {
            let value = self.specialized.initial_at(initial, ty, cell.offset)?;
            return Ok(value
                .as_ref()
                .and_then(known_number)
                .map(|value| value & mask(cell.bytes.saturating_mul(8))));
        }
        if let Some(bytes) = self.buffers.get(&variable) {
            let at = |index: u64| {
                let index = usize::try_from(cell.offset.saturating_add(index)).unwrap_or(usize::MAX);
                bytes.get(index).copied().unwrap_or(0)
            };
            return Ok(Some(
                (0..u64::from(cell.bytes)).fold(0, |all, index| all | u64::from(at(index)) << (8 * index)),
            ));
        }
        if declared.initializer != 0 {
            let Some(value) = self.specialized.constant_value(declared.initializer) else {
                return Err(malformed("an initializer that is not a constant"));
            };
            return Ok(known_number(&self.specialized.scalar_at(value, ty, cell.offset)?));
        }
        let zero = matches!(declared.class, StorageClass::StorageBuffer | StorageClass::Uniform)
            || is_storage_image(module, declared.ty);
        Ok((zero && !self.annotated).then_some(0))
    }

    /// Returns the length of a runtime array at an offset of an object.
    pub fn array_length(&self, object: ObjectId, start: u64, stride: u64) -> u64 {
        let stride = stride.max(1);
        if let Some(bytes) = self.buffers.get(&object.variable) {
            return (bytes.len() as u64).saturating_sub(start) / stride;
        }
        let declared = self.module().variables.get(&object.variable);
        if let (Some(declared), Some(initial)) = (declared, self.inputs.get(&object.variable)) {
            let bytes = self.shaped_bytes(initial, declared.ty, start);
            return bytes.map_or(u64::from(u32::MAX), |bytes| bytes / stride);
        }
        if self.annotated { u64::from(u32::MAX) } else { DEFAULT_BYTES.saturating_sub(start) / stride }
    }

    /// Returns the size of the array there. A view of the same buffer may have elements of another size.
    fn shaped_bytes(&self, initial: &Initial, ty: u32, start: u64) -> Option<u64> {
        let (mut initial, mut ty, mut start) = (initial, ty, start);
        for _ in 0..64 {
            let Initial::Parts(parts) = initial else { return None };
            if matches!(self.module().types.get(&ty), Some(SpirvType::RuntimeArray { .. })) && start == 0 {
                let stride = self.specialized.part_of(ty, 0).ok()?.stride.unwrap_or(1);
                return Some((parts.len() as u64).saturating_mul(stride));
            }
            let (index, part) = self.specialized.part_at(ty, start, parts.len() as u64).ok()??;
            (initial, ty, start) = (parts.get(index as usize)?, part.ty, start - part.offset);
        }
        None
    }
}

/// Returns true if a variable is an array of descriptors.
pub(crate) fn is_descriptor_array(module: &SpirvModule, variable: u32, ty: u32) -> bool {
    let Some(found) = module.variables.get(&variable).filter(|found| found.ty == ty) else {
        return false;
    };
    let element = match module.types.get(&ty) {
        Some(SpirvType::Array { element, .. } | SpirvType::RuntimeArray { element }) => *element,
        _ => return false,
    };
    matches!(found.class, StorageClass::StorageBuffer | StorageClass::Uniform | StorageClass::UniformConstant)
        && module.decorations_of(ty).stride.is_none()
        && matches!(module.types.get(&element), Some(SpirvType::Struct { .. } | SpirvType::Handle(_)))
}

/// Lifts a kernel to litmus tests.
///
/// # Errors
/// Returns the position of what is malformed or unsupported.
pub fn lift(module: &SpirvModule, options: &AnalysisOptions) -> Result<Lifted, Refusal> {
    let entry = module.find_entry(options.entry.as_deref())?;
    stage::check_stage(module, entry.shader_stage(), options.grid)?;
    lift_entry(module, options, (entry.function, entry.shader_stage()), &entry.name)
}

impl AnalysisOptions {
    /// Returns the bound on the iterations of loops that depend on read values.
    pub fn open_bodies(&self) -> u32 {
        self.open_bodies.unwrap_or(DEFAULT_UNROLL)
    }
}

/// Calls `then` with a context that has only the layout of a module, to look up names.
pub(crate) fn with_context<T>(
    module: &SpirvModule,
    options: &AnalysisOptions,
    then: impl FnOnce(&LiftContext<'_>) -> Result<T, Refusal>,
) -> Result<T, Refusal> {
    let nowhere = |problem: Problem| problem.located_at(SourcePosition::Module);
    let entry = module.find_entry(options.entry.as_deref())?;
    let (function, stage) = (entry.function, entry.shader_stage());
    let (by_id, by_result) = (&options.specialization, HashMap::new());
    let local_size = local_size_of(module, by_id, &by_result, function).map_err(nowhere)?;
    let specialized = Specialized::new(module, by_id, &by_result, Some(local_size)).map_err(nowhere)?;
    then(&LiftContext {
        specialized: &specialized,
        stage,
        stage_inputs: &options.stage_inputs,
        sections: None,
        grid: options.grid.unwrap_or([1; 3]),
        local_size,
        subgroup_size: options.subgroup_size.unwrap_or(1).max(1),
        unroll: options.unroll,
        unroll_open: options.open_bodies(),
        deadline: None,
        keep_all: false,
        keep_final: false,
        open: options.open.as_ref(),
        observed: BTreeSet::new(),
        assignment: Assignment::new(),
        inputs: HashMap::new(),
        buffers: HashMap::new(),
        push: BTreeMap::new(),
        push_bytes: &options.push,
        images: &options.images,
        annotated: false,
        canonical: HashMap::new(),
        loops: HashMap::new(),
        dead_variables: RefCell::default(),
    })
}

fn lift_entry(
    module: &SpirvModule,
    options: &AnalysisOptions,
    (function, stage): (u32, Stage),
    name: &str,
) -> Result<Lifted, Refusal> {
    let nowhere = |problem: Problem| problem.located_at(SourcePosition::Module);
    let Launch { inputs, by_id, by_result, local_size, grid, config, annotated } =
        Launch::new(module, options, function).map_err(nowhere)?;
    let specialized =
        Specialized::new(module, &by_id, &by_result, config.map(|_| local_size)).map_err(nowhere)?;
    let invocations = match options.only_invocations.len() {
        0 => enumerate_invocations(grid, local_size, stage).map_err(nowhere)?,
        1..=MAX_INVOCATIONS => options.only_invocations.clone(),
        _ => {
            return Err(Problem::Budget { what: "invocations", bound: MAX_INVOCATIONS }
                .located_at(SourcePosition::Module));
        }
    };
    let all = local_size.iter().product::<u32>();
    let subgroup_size = options.subgroup_size.or(config.map(|config| config[0])).unwrap_or(all).max(1);
    let subgroup_size = if stage.has_workgroups() { subgroup_size } else { 1 };

    let mut buffers: HashMap<u32, &[u8]> = HashMap::new();
    let mut canonical = HashMap::new();
    let mut first_of: BTreeMap<(u32, u32), u32> = BTreeMap::new();
    for id in module.variables.keys() {
        let decorations = module.decorations_of(*id);
        if let (Some(set), Some(binding)) = (decorations.set.or(Some(0)), decorations.binding) {
            canonical.insert(*id, *first_of.entry((set, binding)).or_insert(*id));
            if let Some(bytes) = options.buffers.get(&(set, binding)) {
                buffers.insert(*id, bytes);
            }
        }
    }
    let mut setting = LiftContext {
        specialized: &specialized,
        stage,
        stage_inputs: &options.stage_inputs,
        grid,
        sections: Sections::of_modes(module.execution_modes(function)),
        local_size,
        subgroup_size,
        unroll: options.unroll,
        unroll_open: options.open_bodies(),
        deadline: options.deadline.clone(),
        keep_all: options.keep_all,
        keep_final: options.keep_final,
        open: options.open.as_ref(),
        observed: BTreeSet::new(),
        assignment: Assignment::new(),
        inputs,
        buffers,
        push: BTreeMap::new(),
        push_bytes: &options.push,
        images: &options.images,
        annotated,
        canonical,
        loops: find_loops(module),
        dead_variables: RefCell::default(),
    };
    setting.push = reflected(&specialized, grid, local_size);
    let question = ResolvedQuestion::new(&setting, options)?;
    setting.observed = question.cells.clone();

    let mut notes = Vec::new();
    if !module.vulkan {
        notes.push(
            "the module's memory model is GLSL450; it is analyzed under the Vulkan model: Coherent and \
             Volatile accesses as non-private, available and visible at queue-family scope, workgroup \
             memory at workgroup scope"
                .to_owned(),
        );
    }
    notes.extend(setting.assumed_images());
    notes.extend(setting.sections.and_then(|sections| sections.note).map(str::to_owned));
    let mut lifted = Lifted {
        entry: name.to_owned(),
        cases: Vec::new(),
        sampled: false,
        invocations: invocations.clone(),
        subgroup_size,
        findings: Vec::new(),
        question: question.text.clone(),
        notes,
    };
    let mut findings = BTreeSet::new();
    let mut undefined = BTreeSet::new();
    let first = lift_case(&setting, function, name, &invocations, &question, &mut findings, &mut undefined)?;
    lifted.cases.push(first);
    // The question may also refer to memory that no invocation writes.
    for cell in &question.cells {
        if setting.initial_value(*cell).map_err(nowhere)?.is_none() {
            undefined.insert(UndefOrigin::from_cell(*cell));
        }
    }
    lifted.sampled = !undefined.is_empty();
    let values = tried::values(&setting, &question.numbers());
    for way in tried::ways(&undefined, &values) {
        setting.assignment = way;
        let mut more = BTreeSet::new();
        let next = lift_case(&setting, function, name, &invocations, &question, &mut findings, &mut more)?;
        // Most values lead to the same test as others.
        if lifted.cases.iter().all(|known| known.test != next.test) {
            lifted.cases.push(next);
        }
    }
    lifted.findings = findings.into_iter().collect();
    Ok(lifted)
}

/// Lifts one test for the current choice of unspecified values.
fn lift_case(
    setting: &LiftContext<'_>,
    function: u32,
    name: &str,
    invocations: &[InvocationId],
    question: &ResolvedQuestion,
    findings: &mut BTreeSet<LiftFinding>,
    undefined: &mut BTreeSet<UndefOrigin>,
) -> Result<LiftedCase, Refusal> {
    let mut knowledge = Knowledge::default();
    let (mut frozen, mut paths) = (false, 0);
    for number in 0.. {
        let mut round = Round::default();
        let mut walked: Vec<Walked> = Vec::new();
        for (thread, identity) in invocations.iter().enumerate() {
            let walk = Walk::new(setting, &knowledge, &mut round, thread as u16, identity);
            let walk = walk.execute_all_paths(function)?;
            paths += walk.paths;
            if paths > MAX_PATHS {
                let budget = Problem::Budget { what: "paths of all invocations", bound: MAX_PATHS };
                return Err(budget.located_at(SourcePosition::Module));
            }
            walked.push(walk);
        }
        check_overlaps(setting, &round.facts.touched)
            .map_err(|problem| problem.located_at(SourcePosition::Module))?;
        let mut next = knowledge.clone();
        let mut grown = false;
        if !frozen {
            for (cell, domain) in &round.facts.domains {
                let known = next.domains.entry(*cell).or_insert_with(crate::value::NumberDomain::empty);
                grown |= known.union_with(domain);
            }
        }
        for (cell, touch) in &round.facts.touched {
            let known: &mut Touch = next.touched.entry(*cell).or_default();
            known.readers |= touch.readers;
            known.writers |= touch.writers;
            known.has_ordering_access |= touch.has_ordering_access;
        }
        next.opaque.extend(round.facts.opaque.iter().copied());
        for (cell, by_thread) in &round.facts.updates {
            let known = next.updates.entry(*cell).or_default();
            for (thread, count) in by_thread {
                let most = known.entry(*thread).or_default();
                *most = (*most).max(*count);
            }
        }
        for (cell, by_value) in &round.facts.generations {
            let known = next.generations.entry(*cell).or_default();
            for (value, generation) in by_value {
                let least = known.entry(*value).or_insert(*generation);
                *least = (*least).min(*generation);
            }
        }
        let settled = next.touched == knowledge.touched
            && next.opaque == knowledge.opaque
            && (frozen || next.updates == knowledge.updates && next.generations == knowledge.generations);
        if settled && !grown {
            let hidden = knowledge.opaque.iter().find(|cell| setting.in_buffer(**cell));
            if let Some(cell) = hidden.filter(|_| setting.keep_final) {
                let what =
                    format!("the value stored to `{}`", setting.module().display_name(cell.object.variable));
                return Err(Problem::Opaque { what }.located_at(SourcePosition::Module));
            }
            findings.extend(std::mem::take(&mut round.findings));
            undefined.extend(std::mem::take(&mut round.undefined));
            // The answer depends on the initial content of memory that is queried and never written.
            for cell in &question.cells {
                let written = knowledge.touched.get(cell).is_some_and(|touch| touch.writers != 0);
                if !written
                    && setting
                        .initial_value(*cell)
                        .map_err(|problem| problem.located_at(SourcePosition::Module))?
                        .is_none()
                {
                    undefined.insert(UndefOrigin::Memory(cell.object, cell.offset, None));
                }
            }
            return assemble::case(setting, name, invocations, question, round, walked, findings)
                .map_err(|problem| problem.located_at(SourcePosition::Module));
        }
        // Widening bound: an execution has at most this many writes, and each value depends on earlier ones.
        // One iteration finds the address, one the sharing, and one the value.
        let writes: u32 = walked.iter().map(|walked| walked.writes).sum();
        frozen |= number > 3 * (writes as usize + 1);
        if number > MAX_ROUNDS {
            return Err(Problem::Budget { what: "rounds of values", bound: MAX_ROUNDS }
                .located_at(SourcePosition::Module));
        }
        knowledge = next;
    }
    Err(malformed("no round").located_at(SourcePosition::Module))
}

/// Refuses shared cells that overlap and differ in extent.
fn check_overlaps(setting: &LiftContext<'_>, touched: &BTreeMap<MemoryCell, Touch>) -> Result<(), Problem> {
    let mut before: Option<(MemoryCell, Touch)> = None;
    for (cell, touch) in touched {
        if let Some((earlier, union)) = before
            && earlier.object == cell.object
            && earlier.offset.saturating_add(u64::from(earlier.bytes)) > cell.offset
        {
            let union = Touch {
                readers: union.readers | touch.readers,
                writers: union.writers | touch.writers,
                has_ordering_access: union.has_ordering_access || touch.has_ordering_access,
            };
            if union.is_shared() {
                let name = setting.module().display_name(cell.object.variable);
                return Err(Problem::MixedSize { name, first: cell.bytes, second: earlier.bytes });
            }
            let end = |cell: MemoryCell| cell.offset.saturating_add(u64::from(cell.bytes));
            before = Some((if end(*cell) > end(earlier) { *cell } else { earlier }, union));
            continue;
        }
        before = Some((*cell, *touch));
    }
    Ok(())
}

pub(crate) fn local_size_of(
    module: &SpirvModule,
    by_id: &HashMap<u32, u64>,
    by_result: &HashMap<u32, Initial>,
    function: u32,
) -> Result<[u32; 3], Problem> {
    Ok(Specialized::new(module, by_id, by_result, None)?.local_size(function)?)
}

fn enumerate_invocations(
    grid: [u32; 3],
    local: [u32; 3],
    stage: Stage,
) -> Result<Vec<InvocationId>, Problem> {
    let count = grid.iter().chain(&local).try_fold(1_u64, |product, n| product.checked_mul(u64::from(*n)));
    if count.is_none_or(|count| count > MAX_INVOCATIONS as u64) {
        let bound = MAX_INVOCATIONS;
        let each = local.iter().try_fold(1_u64, |product, n| product.checked_mul(u64::from(*n)));
        let alone = each.is_none_or(|each| each > bound as u64);
        let what = if alone { ONE_WORKGROUP } else { "invocations" };
        return Err(Problem::Budget { what, bound });
    }
    let each = |size: [u32; 3]| {
        (0..size[2])
            .flat_map(move |z| (0..size[1]).flat_map(move |y| (0..size[0]).map(move |x| [x, y, z])))
            .enumerate()
    };
    let mut all = Vec::new();
    for (workgroup_index, workgroup) in each(grid) {
        for (local_index, local) in each(local) {
            let (workgroup_index, local_index) = (workgroup_index as u32, local_index as u32);
            all.push(InvocationId { workgroup, local, workgroup_index, local_index, stage });
        }
    }
    Ok(all)
}

/// Returns the loops of each function: header, merge block (0 if undeclared), and last back edge.
pub(crate) fn find_loops(module: &SpirvModule) -> HashMap<u32, HashMap<u32, (u32, usize)>> {
    let mut all = HashMap::new();
    for (id, function) in &module.functions {
        let mut found: HashMap<u32, (u32, usize)> = HashMap::new();
        let mut block = 0;
        for (at, instruction) in function.code.iter().enumerate() {
            match module.operation(instruction) {
                SpirvOperation::Label => block = instruction.result,
                SpirvOperation::LoopMerge { merge, .. } => found.entry(block).or_default().0 = merge,
                _ => {}
            }
            for target in module.successors(&function.types, instruction) {
                if function.labels.get(&target).is_some_and(|position| *position <= at) {
                    let entry = found.entry(target).or_default();
                    entry.1 = entry.1.max(at);
                }
            }
        }
        all.insert(*id, found);
    }
    all
}
