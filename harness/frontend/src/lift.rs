//! From a kernel, a grid and its inputs to litmus tests.
//!
//! Long because what walks share, the rounds over all invocations and what is asked of them are one thing.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use arithmetic::mask;
use litmus::Test;
use rspirv::spirv::StorageClass;

use crate::annotations::{Formula, Initial};
use crate::assemble;
use crate::error::{ONE_WORKGROUP, Place, Problem, Refusal, malformed};
use crate::grid::Sampler;
use crate::inputs::{AddressInput, ImageInput};
use crate::launch::{Launch, reflected};
use crate::layout::{Specialized, known};
use crate::module::{Module, Type};
use crate::order::class_of;
use crate::question::Asked;
use crate::section::Sections;
use crate::stage::{self, Stage};
use crate::state::State;
use crate::tried::{self, Assignment};
use crate::until::Until;
use crate::value::{Cell, Object, Origin};
use crate::walk::{Knowledge, Round, Touch, Walk, Walked};

/// Invocations of a grid at most: the bound of the engine on threads.
pub(crate) const MAX_INVOCATIONS: usize = 16;
/// Rounds over all threads at most.
const MAX_ROUNDS: usize = 400;
/// Paths of all invocations in all rounds at most.
const MAX_PATHS: usize = 1 << 16;
/// Bodies of a loop that depends on what is read, where nothing else is asked for.
pub const DEFAULT_UNROLL: u32 = 2;
/// Bytes of a buffer that nothing is said of.
pub(crate) const DEFAULT_BYTES: u64 = 64 * 1024;

/// What is asked of a kernel, and with what.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The entry point; the only one where none is named.
    pub entry: Option<String>,
    /// Workgroups of the dispatch; what the annotations say, or one, where it is not given.
    pub grid: Option<[u32; 3]>,
    /// Invocations of a subgroup; what the annotations say, or all of a workgroup, where it is not given.
    pub subgroup_size: Option<u32>,
    /// Specialization constants by their `SpecId`.
    pub specialization: HashMap<u32, u64>,
    /// Bytes of push constants by their offset.
    pub push: BTreeMap<u64, u8>,
    /// What vertices and fragments are given, by location: the value of each invocation one after the other, from the start again where
    /// there are more of them. What is not given is not followed.
    pub given: BTreeMap<u32, Vec<u8>>,
    /// Contents of buffers by set and binding.
    pub buffers: BTreeMap<(u32, u32), Vec<u8>>,
    /// Images by set and binding.
    pub images: BTreeMap<(u32, u32), ImageInput>,
    /// Samplers by set and binding, those of images that have one with them too.
    pub samplers: BTreeMap<(u32, u32), Sampler>,
    /// Buffers behind addresses.
    pub addresses: Vec<AddressInput>,
    /// Which of these inputs a case gives, without what they hold.
    pub of_case: Option<Box<Options>>,
    /// Bodies of a loop at most. Not given, what is known is walked to its end, and the others as [`Options::open_bodies`] says.
    pub unroll: Option<u32>,
    /// Bodies of a loop that depends on what is read, where no bound is given; [`DEFAULT_UNROLL`] where this is not either.
    pub open_bodies: Option<u32>,
    /// What is to hold of every final state.
    pub assertion: Option<Formula>,
    /// Whether the annotations' filter is left out.
    pub ignore_filter: bool,
    /// Whether accesses stay that one invocation alone is about: for whoever changes the kernel and asks again.
    pub keep_all: bool,
    /// Whether everything that is written to buffers stays to be seen: for whoever asks about all final contents.
    pub keep_final: bool,
    /// Whether a walk only executes, and looks at no access: to measure what that takes.
    pub blind: bool,
    /// Orders of the invocations that a walk over the whole grid tries where the order decides, whatever earlier ones show; a
    /// few, until something is found, where it is not given.
    pub schedules: Option<u64>,
    /// What those orders are drawn from.
    pub seed: u64,
    /// The invocations that are lifted, where it is not all of them: what they do with nobody else there.
    pub only: Vec<Identity>,
    /// When lifting and walking are given up ([`Problem::OutOfTime`]); never where there is none.
    pub until: Option<Until>,
}

/// Where an invocation is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// `WorkgroupId`.
    pub workgroup: [u32; 3],
    /// `LocalInvocationId`.
    pub local: [u32; 3],
    pub(crate) workgroup_index: u32,
    pub(crate) local_index: u32,
    pub(crate) stage: Stage,
}

/// What kind of finding it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FindingKind {
    /// Two accesses, one of them a write, that nothing orders.
    Race,
    /// The same between lanes of one subgroup alone, which would be ordered if these went on in lockstep.
    Lockstep,
    /// A read that a write happens before, which is not made available or not visible to it.
    UnpublishedRead,
    /// Not all invocations of the execution scope come to an instance of a control barrier.
    DivergentBarrier,
    /// An access beyond the end of an array.
    OutOfBounds,
    /// Something depends on a value that nobody wrote.
    UninitialisedRead,
    /// Something without a defined result is executed.
    UndefinedBehaviour,
    /// An invocation repeats a loop for good.
    Hang,
}

impl FindingKind {
    /// Its name in output.
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
        }
    }

    /// Whether two accesses lack an order.
    pub fn is_race(self) -> bool {
        matches!(self, FindingKind::Race | FindingKind::Lockstep | FindingKind::UnpublishedRead)
    }
}

/// A place of a kernel and who is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spot {
    /// Index among the invocations.
    pub thread: u16,
    /// Index of the source line, 0 where there is none.
    pub line: u32,
    /// The place in the module.
    pub place: Place,
    /// Whether it writes, where it is an access.
    pub access: Option<bool>,
}

/// Something to tell about a kernel beyond the answer of a model.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// Its kind.
    pub kind: FindingKind,
    /// In words.
    pub message: String,
    /// Where.
    pub at: Vec<Spot>,
}

/// A litmus test of a kernel, under values for what nobody gave.
#[derive(Clone, Debug)]
pub struct Case {
    /// The test.
    pub test: Test,
    /// For each thread and instruction of the test where it comes from.
    pub origins: Vec<Vec<Spot>>,
    /// For each location of the test what a reader of the source calls it.
    pub names: Vec<String>,
    /// For each location of the test the cell that it is.
    pub(crate) cells: Vec<Cell>,
    /// What is wrong where the code has a mark with the index, if some execution comes there.
    pub(crate) suspicions: Vec<Finding>,
}

/// A kernel as litmus tests.
#[derive(Clone, Debug)]
pub struct Lifted {
    /// The entry point.
    pub entry: String,
    /// A test for each way to choose values that nobody gave: usually one.
    pub cases: Vec<Case>,
    /// Whether more values that nobody gave were possible than there are cases.
    pub sampled: bool,
    /// The invocations, in the order of the threads.
    pub invocations: Vec<Identity>,
    /// Invocations of a subgroup.
    pub subgroup_size: u32,
    /// What the walk found.
    pub findings: Vec<Finding>,
    /// The question in the words of whoever asks it.
    pub question: Option<String>,
    /// What a reader should know of how the module was read.
    pub notes: Vec<String>,
}

/// Everything that the walks share.
pub(crate) struct Setting<'a> {
    pub specialized: &'a Specialized<'a>,
    pub stage: Stage,
    /// As [`Options::given`].
    pub given: &'a BTreeMap<u32, Vec<u8>>,
    pub grid: [u32; 3],
    /// What is said of interlocked sections.
    pub sections: Option<Sections>,
    pub local_size: [u32; 3],
    pub subgroup_size: u32,
    pub unroll: Option<u32>,
    /// Bodies of a loop that depends on what is read.
    pub unroll_open: u32,
    /// When lifting is given up.
    pub until: Option<Until>,
    /// Whether accesses stay that one invocation alone is about.
    pub keep_all: bool,
    /// Whether final contents of buffers are asked about.
    pub keep_final: bool,
    /// Cells that are asked about.
    pub observed: BTreeSet<Cell>,
    assignment: Assignment,
    inputs: HashMap<u32, &'a Initial>,
    buffers: HashMap<u32, &'a [u8]>,
    push: BTreeMap<u64, u64>,
    push_bytes: &'a BTreeMap<u64, u8>,
    annotated: bool,
    canonical: HashMap<u32, u32>,
    loops: HashMap<u32, HashMap<u32, (u32, usize)>>,
}

impl<'a> Setting<'a> {
    pub fn module(&self) -> &'a Module {
        self.specialized.module
    }

    pub fn loops(&self, function: u32) -> &HashMap<u32, (u32, usize)> {
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

    /// The result of the instruction where a state stands; 0 where it has none.
    pub fn instruction_result(&self, state: &State) -> u32 {
        let Some(frame) = state.frames.last() else { return 0 };
        let function = self.module().functions.get(&frame.function);
        function.and_then(|function| function.code.get(frame.at)).map_or(0, |instruction| instruction.result)
    }

    /// The label of a segment: numbers from the top, which the labels of paths do not reach.
    #[allow(clippy::unused_self)]
    pub fn segment_label(&self, index: usize) -> u16 {
        u16::MAX - index.min(usize::from(u16::MAX)) as u16
    }

    /// Whether a cell lies in a buffer, whose final contents the host sees.
    pub fn in_buffer(&self, cell: Cell) -> bool {
        self.class_of(cell.object.variable) == Some(litmus::StorageClass::Buffer)
    }

    /// The storage class of a variable that several invocations reach. Outputs of vertices and fragments are no memory of others.
    pub fn class_of(&self, variable: u32) -> Option<litmus::StorageClass> {
        let class = self.module().variables.get(&variable)?.class;
        let own = class == StorageClass::Output && self.stage != Stage::Compute;
        class_of(class).filter(|_| !own)
    }

    /// The first variable with the same binding.
    pub fn canonical(&self, variable: u32) -> u32 {
        self.canonical.get(&variable).copied().unwrap_or(variable)
    }

    /// Whether there is another variable with the same binding.
    pub fn is_shared_binding(&self, variable: u32) -> bool {
        self.canonical.values().filter(|first| **first == variable).count() > 1
    }

    pub fn invocations(&self) -> u32 {
        self.local_size.iter().fold(1, |product: u32, size| product.saturating_mul(*size))
    }

    /// The value that is taken for one that nobody gave.
    pub fn assigned(&self, origin: Origin) -> u64 {
        self.assignment.get(&origin).copied().unwrap_or(0)
    }

    /// The value that is taken for what memory holds at first that nobody gave.
    pub fn assigned_to(&self, cell: Cell) -> u64 {
        self.assigned(Origin::of(cell)) & mask(cell.bytes.saturating_mul(8))
    }

    pub fn is_built_in(&self, variable: u32) -> bool {
        let input = |v: &crate::module::Variable| v.initializer == 0 && v.class != StorageClass::Workgroup;
        self.module().decorations(variable).built_in.is_some()
            && self.module().variables.get(&variable).is_some_and(input)
    }

    pub fn is_descriptor_array(&self, variable: u32, ty: u32) -> bool {
        is_descriptor_array(self.module(), variable, ty)
    }

    /// What push constants hold at an offset, as far as something is said of it.
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

    /// What memory holds at first; `None` where nobody gave a value.
    pub fn initial(&self, cell: Cell) -> Result<Option<u64>, Problem> {
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
                .and_then(known)
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
            let Some(value) = self.specialized.constant(declared.initializer) else {
                return Err(malformed("an initializer that is no constant"));
            };
            return Ok(known(&self.specialized.scalar_at(value, ty, cell.offset)?));
        }
        let zero = matches!(declared.class, StorageClass::StorageBuffer | StorageClass::Uniform);
        Ok((zero && !self.annotated).then_some(0))
    }

    /// Elements of an array without a length that begins at an offset of an object.
    pub fn array_length(&self, object: Object, start: u64, stride: u64) -> u64 {
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

    /// The bytes of the array that begins there. A view of the same buffer may have elements of another size.
    fn shaped_bytes(&self, initial: &Initial, ty: u32, start: u64) -> Option<u64> {
        let (mut initial, mut ty, mut start) = (initial, ty, start);
        for _ in 0..64 {
            let Initial::Parts(parts) = initial else { return None };
            if matches!(self.module().types.get(&ty), Some(Type::RuntimeArray { .. })) && start == 0 {
                let stride = self.specialized.part_of(ty, 0).ok()?.stride.unwrap_or(1);
                return Some((parts.len() as u64).saturating_mul(stride));
            }
            let (index, part) = self.specialized.part_at(ty, start, parts.len() as u64).ok()??;
            (initial, ty, start) = (parts.get(index as usize)?, part.ty, start - part.offset);
        }
        None
    }
}

/// Whether a variable of a type is an array of descriptors.
pub(crate) fn is_descriptor_array(module: &Module, variable: u32, ty: u32) -> bool {
    let Some(found) = module.variables.get(&variable).filter(|found| found.ty == ty) else {
        return false;
    };
    let element = match module.types.get(&ty) {
        Some(Type::Array { element, .. } | Type::RuntimeArray { element }) => *element,
        _ => return false,
    };
    matches!(found.class, StorageClass::StorageBuffer | StorageClass::Uniform | StorageClass::UniformConstant)
        && module.decorations(ty).stride.is_none()
        && matches!(module.types.get(&element), Some(Type::Struct { .. } | Type::Handle(_)))
}

/// Lifts a kernel.
///
/// # Errors
/// What of it is malformed or beyond the lifter, with its place.
pub fn lift(module: &Module, options: &Options) -> Result<Lifted, Refusal> {
    let entry = module.entry(options.entry.as_deref()).map_err(|problem| problem.at(Place::Module))?;
    stage::check(module, entry.stage(), options.grid)?;
    lift_entry(module, options, (entry.function, entry.stage()), &entry.name)
}

impl Options {
    /// Bodies of a loop that depends on what is read, where no bound is given.
    pub fn open_bodies(&self) -> u32 {
        self.open_bodies.unwrap_or(DEFAULT_UNROLL)
    }
}

/// Hands on what names of elements are looked up in, with nothing but the layout of a module.
pub(crate) fn with_setting<T>(
    module: &Module,
    options: &Options,
    then: impl FnOnce(&Setting<'_>) -> Result<T, Refusal>,
) -> Result<T, Refusal> {
    let nowhere = |problem: Problem| problem.at(Place::Module);
    let entry = module.entry(options.entry.as_deref()).map_err(nowhere)?;
    let (function, stage) = (entry.function, entry.stage());
    let (by_id, by_result) = (&options.specialization, HashMap::new());
    let local_size = local_size(module, by_id, &by_result, function).map_err(nowhere)?;
    let specialized = Specialized::new(module, by_id, &by_result, Some(local_size)).map_err(nowhere)?;
    then(&Setting {
        specialized: &specialized,
        stage,
        given: &options.given,
        sections: None,
        grid: options.grid.unwrap_or([1; 3]),
        local_size,
        subgroup_size: options.subgroup_size.unwrap_or(1).max(1),
        unroll: options.unroll,
        unroll_open: options.open_bodies(),
        until: None,
        keep_all: false,
        keep_final: false,
        observed: BTreeSet::new(),
        assignment: Assignment::new(),
        inputs: HashMap::new(),
        buffers: HashMap::new(),
        push: BTreeMap::new(),
        push_bytes: &options.push,
        annotated: false,
        canonical: HashMap::new(),
        loops: HashMap::new(),
    })
}

fn lift_entry(
    module: &Module,
    options: &Options,
    (function, stage): (u32, Stage),
    name: &str,
) -> Result<Lifted, Refusal> {
    let nowhere = |problem: Problem| problem.at(Place::Module);
    let Launch { inputs, by_id, by_result, local_size, grid, config, annotated } =
        Launch::new(module, options, function).map_err(nowhere)?;
    let specialized =
        Specialized::new(module, &by_id, &by_result, config.map(|_| local_size)).map_err(nowhere)?;
    let invocations = match options.only.len() {
        0 => invocations(grid, local_size, stage).map_err(nowhere)?,
        1..=MAX_INVOCATIONS => options.only.clone(),
        _ => return Err(Problem::Budget { what: "invocations", bound: MAX_INVOCATIONS }.at(Place::Module)),
    };
    let all = local_size.iter().product::<u32>();
    let subgroup_size = options.subgroup_size.or(config.map(|config| config[0])).unwrap_or(all).max(1);
    let subgroup_size = if stage.has_workgroups() { subgroup_size } else { 1 };

    let mut buffers: HashMap<u32, &[u8]> = HashMap::new();
    let mut canonical = HashMap::new();
    let mut first_of: BTreeMap<(u32, u32), u32> = BTreeMap::new();
    for id in module.variables.keys() {
        let decorations = module.decorations(*id);
        if let (Some(set), Some(binding)) = (decorations.set.or(Some(0)), decorations.binding) {
            canonical.insert(*id, *first_of.entry((set, binding)).or_insert(*id));
            if let Some(bytes) = options.buffers.get(&(set, binding)) {
                buffers.insert(*id, bytes);
            }
        }
    }
    let mut setting = Setting {
        specialized: &specialized,
        stage,
        given: &options.given,
        grid,
        sections: module.sections(function),
        local_size,
        subgroup_size,
        unroll: options.unroll,
        unroll_open: options.open_bodies(),
        until: options.until.clone(),
        keep_all: options.keep_all,
        keep_final: options.keep_final,
        observed: BTreeSet::new(),
        assignment: Assignment::new(),
        inputs,
        buffers,
        push: BTreeMap::new(),
        push_bytes: &options.push,
        annotated,
        canonical,
        loops: loops(module),
    };
    setting.push = reflected(&specialized, grid, local_size);
    let question = Asked::new(&setting, options)?;
    setting.observed = question.cells.clone();

    let mut notes = Vec::new();
    if !module.vulkan {
        notes.push(
            "the module's memory model is GLSL450: read as the Vulkan model, Coherent and Volatile as non-private and \
             available or visible to the queue family, workgroup memory so to the workgroup"
                .to_owned(),
        );
    }
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
    let first = case(&setting, function, name, &invocations, &question, &mut findings, &mut undefined)?;
    lifted.cases.push(first);
    // What is asked about may be what nobody wrote either.
    for cell in &question.cells {
        if setting.initial(*cell).map_err(nowhere)?.is_none() {
            undefined.insert(Origin::of(*cell));
        }
    }
    lifted.sampled = !undefined.is_empty();
    let values = tried::values(&setting, &question.numbers());
    for way in tried::ways(&undefined, &values) {
        setting.assignment = way;
        let mut more = BTreeSet::new();
        let next = case(&setting, function, name, &invocations, &question, &mut findings, &mut more)?;
        // Most values lead the same way as others.
        if lifted.cases.iter().all(|known| known.test != next.test) {
            lifted.cases.push(next);
        }
    }
    lifted.findings = findings.into_iter().collect();
    Ok(lifted)
}

/// One test, with the values for what nobody gave that the setting has.
fn case(
    setting: &Setting<'_>,
    function: u32,
    name: &str,
    invocations: &[Identity],
    question: &Asked,
    findings: &mut BTreeSet<Finding>,
    undefined: &mut BTreeSet<Origin>,
) -> Result<Case, Refusal> {
    let mut knowledge = Knowledge::default();
    let (mut frozen, mut paths) = (false, 0);
    for number in 0.. {
        let mut round = Round::default();
        let mut walked: Vec<Walked> = Vec::new();
        for (thread, identity) in invocations.iter().enumerate() {
            let walk = Walk::new(setting, &knowledge, &mut round, thread as u16, identity);
            let walk = walk.all(function)?;
            paths += walk.paths;
            if paths > MAX_PATHS {
                let budget = Problem::Budget { what: "paths of all invocations", bound: MAX_PATHS };
                return Err(budget.at(Place::Module));
            }
            walked.push(walk);
        }
        check_overlaps(setting, &round.found.touched).map_err(|problem| problem.at(Place::Module))?;
        let mut next = knowledge.clone();
        let mut grown = false;
        if !frozen {
            for (cell, domain) in &round.found.domains {
                let known = next.domains.entry(*cell).or_insert_with(crate::value::Domain::none);
                grown |= known.add(domain);
            }
        }
        for (cell, touch) in &round.found.touched {
            let known: &mut Touch = next.touched.entry(*cell).or_default();
            known.readers |= touch.readers;
            known.writers |= touch.writers;
            known.ordered |= touch.ordered;
        }
        next.opaque.extend(round.found.opaque.iter().copied());
        for (cell, by_thread) in &round.found.updates {
            let known = next.updates.entry(*cell).or_default();
            for (thread, count) in by_thread {
                let most = known.entry(*thread).or_default();
                *most = (*most).max(*count);
            }
        }
        for (cell, by_value) in &round.found.generations {
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
                let what = format!("what is stored to `{}`", setting.module().name(cell.object.variable));
                return Err(Problem::Opaque { what }.at(Place::Module));
            }
            findings.extend(std::mem::take(&mut round.findings));
            undefined.extend(std::mem::take(&mut round.undefined));
            // What is asked of memory that nobody wrote depends on what it held.
            for cell in &question.cells {
                let written = knowledge.touched.get(cell).is_some_and(|touch| touch.writers != 0);
                if !written && setting.initial(*cell).map_err(|problem| problem.at(Place::Module))?.is_none()
                {
                    undefined.insert(Origin::Memory(cell.object, cell.offset, None));
                }
            }
            return assemble::case(setting, name, invocations, question, round, walked, findings)
                .map_err(|problem| problem.at(Place::Module));
        }
        // An execution has no more writes than these, and a value that is computed from others comes after them: a round for
        // the address, one for who else is there, and one for the value.
        let writes: u32 = walked.iter().map(|walked| walked.writes).sum();
        frozen |= number > 3 * (writes as usize + 1);
        if number > MAX_ROUNDS {
            return Err(Problem::Budget { what: "rounds of values", bound: MAX_ROUNDS }.at(Place::Module));
        }
        knowledge = next;
    }
    Err(malformed("no round").at(Place::Module))
}

/// Refuses cells that share bytes and differ in extent, where several invocations are about them.
fn check_overlaps(setting: &Setting<'_>, touched: &BTreeMap<Cell, Touch>) -> Result<(), Problem> {
    let mut before: Option<(Cell, Touch)> = None;
    for (cell, touch) in touched {
        if let Some((earlier, union)) = before
            && earlier.object == cell.object
            && earlier.offset.saturating_add(u64::from(earlier.bytes)) > cell.offset
        {
            let union = Touch {
                readers: union.readers | touch.readers,
                writers: union.writers | touch.writers,
                ordered: union.ordered || touch.ordered,
            };
            if union.is_shared() {
                let name = setting.module().name(cell.object.variable);
                return Err(Problem::MixedSize { name, first: cell.bytes, second: earlier.bytes });
            }
            let end = |cell: Cell| cell.offset.saturating_add(u64::from(cell.bytes));
            before = Some((if end(*cell) > end(earlier) { *cell } else { earlier }, union));
            continue;
        }
        before = Some((*cell, *touch));
    }
    Ok(())
}

pub(crate) fn local_size(
    module: &Module,
    by_id: &HashMap<u32, u64>,
    by_result: &HashMap<u32, Initial>,
    function: u32,
) -> Result<[u32; 3], Problem> {
    let specialized = Specialized::new(module, by_id, by_result, None)?;
    // A constant with the decoration goes before the mode.
    let decorated = module.decorations.iter().find(|(id, decorations)| {
        decorations.built_in == Some(rspirv::spirv::BuiltIn::WorkgroupSize)
            && module.constants.contains_key(id)
    });
    let sizes: Vec<u64> = match (decorated, module.local_size(function)) {
        (Some((id, _)), _) => (0..3)
            .filter_map(|axis| {
                let part = crate::layout::part(specialized.constant(*id)?, axis)?;
                known(&part)
            })
            .collect(),
        (None, Some((numbers, false))) => numbers.iter().map(|number| u64::from(*number)).collect(),
        (None, Some((ids, true))) => ids.iter().filter_map(|id| specialized.number(*id)).collect(),
        (None, None) => vec![1, 1, 1],
    };
    let sizes: Vec<u32> = sizes.iter().filter_map(|size| u32::try_from(*size).ok()).collect();
    <[u32; 3]>::try_from(sizes).map_err(|_| malformed("a local size that is no three numbers"))
}

fn invocations(grid: [u32; 3], local: [u32; 3], stage: Stage) -> Result<Vec<Identity>, Problem> {
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
            all.push(Identity { workgroup, local, workgroup_index, local_index, stage });
        }
    }
    Ok(all)
}

/// The loops of each function: for each header its merge block, 0 where it declares none, and its last jump back.
pub(crate) fn loops(module: &Module) -> HashMap<u32, HashMap<u32, (u32, usize)>> {
    use rspirv::spirv::Op;
    let mut all = HashMap::new();
    for (id, function) in &module.functions {
        let mut found: HashMap<u32, (u32, usize)> = HashMap::new();
        let mut block = 0;
        for (at, instruction) in function.code.iter().enumerate() {
            let operands = module.operands(instruction);
            match instruction.op {
                Op::Label => block = instruction.result,
                Op::LoopMerge => {
                    let entry = found.entry(block).or_default();
                    entry.0 = operands.first().copied().unwrap_or(0);
                }
                Op::Branch | Op::BranchConditional | Op::Switch => {
                    for target in operands {
                        if function.labels.get(target).is_some_and(|position| *position <= at) {
                            let entry = found.entry(*target).or_default();
                            entry.1 = entry.1.max(at);
                        }
                    }
                }
                _ => {}
            }
        }
        all.insert(*id, found);
    }
    all
}
