//! The context that symbolic executors share: launch, inputs and choices of unspecified values.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use arithmetic::mask;
use rspirv::spirv::StorageClass;

use crate::constants::{constant_value, initial_at, known_number, scalar_at};
use crate::liveness::dead_variables;
use crate::state::PathState;
use crate::value::UndefOrigin;
use entry_point::inputs::{DEFAULT_BYTES, ImageInput};
use entry_point::interlock::InterlockExecutionMode;
use entry_point::layout::{MemoryCell, ObjectId, is_descriptor_array, is_storage_image};
use entry_point::open_memory::OpenMemory;
use entry_point::{DeadlinePredicate, Problem, malformed};
use spirv_reader::annotations::Initial;
use spirv_reader::{Specialized, SpirvModule, SpirvType, Stage, memory_class};

/// One choice of unspecified values.
pub(crate) type Assignment = BTreeMap<UndefOrigin, u64>;

/// For each function and loop header, the variables that are dead there; filled on demand.
type DeadVariables = RefCell<HashMap<(u32, u32), Rc<HashSet<u32>>>>;

/// The context that all symbolic executors share.
pub(crate) struct LiftContext<'a> {
    pub specialized: &'a Specialized<'a>,
    pub stage: Stage,
    /// See [`AnalysisOptions::stage_inputs`](entry_point::AnalysisOptions::stage_inputs).
    pub stage_inputs: &'a BTreeMap<u32, Vec<u8>>,
    pub grid: [u32; 3],
    /// The interlock mode of the entry point.
    pub reconverges_maximally: bool,
    pub sections: Option<InterlockExecutionMode>,
    pub local_size: [u32; 3],
    pub subgroup_size: u32,
    /// True if the device defines accesses beyond the end of a buffer.
    pub is_robust: bool,
    pub unroll: Option<u32>,
    /// Bound on the iterations of loops that depend on read values.
    pub unroll_open_loops: u32,
    /// When to give up.
    pub deadline: Option<DeadlinePredicate>,
    /// True to emit accesses of unshared cells too.
    pub keep_all: bool,
    /// True if final buffer contents are queried.
    pub keep_final: bool,
    /// The memory that others write.
    pub open: Option<&'a OpenMemory>,
    /// Cells that the question refers to.
    pub observed: BTreeSet<MemoryCell>,
    pub assignment: Assignment,
    pub inputs: HashMap<u32, &'a Initial>,
    pub buffers: HashMap<u32, &'a [u8]>,
    pub push: BTreeMap<u64, u64>,
    pub push_bytes: &'a BTreeMap<u64, u8>,
    /// Images by set and binding.
    pub images: &'a BTreeMap<(u32, u32), ImageInput>,
    pub is_annotated: bool,
    pub canonical: HashMap<u32, u32>,
    pub loops: HashMap<u32, HashMap<u32, (u32, usize)>>,
    pub dead_variables: DeadVariables,
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
        Some(dead.or_insert_with(|| Rc::new(dead_variables(self.module(), code, header))).clone())
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
        function
            .and_then(|function| function.code.get(frame.instruction_index))
            .map_or(0, |instruction| instruction.result)
    }

    /// Returns the label of a segment. Segments count down from the top, so they never meet the labels of
    /// paths.
    #[allow(clippy::unused_self)]
    pub fn segment_label(&self, index: usize) -> u16 {
        u16::MAX - index.min(usize::from(u16::MAX)) as u16
    }

    /// Returns true if a cell lies in a buffer, whose final content is observable.
    pub fn is_in_buffer(&self, cell: MemoryCell) -> bool {
        self.class_of(cell.object.variable) == Some(litmus::StorageClass::Buffer)
    }

    /// Returns the memory that others write, if a cell belongs to it.
    pub fn open_memory(&self, cell: MemoryCell) -> Option<&'a OpenMemory> {
        let binding = self.module().descriptor_of(cell.object.variable);
        self.open.filter(|open| open.contains(binding, cell.offset, cell.bytes))
    }

    /// Returns true if operations and positions that depend on read values are functions of them.
    pub fn has_functions(&self) -> bool {
        self.open.is_some_and(|open| open.models_functions)
    }

    /// Returns the storage class of a shared variable; `None` for private ones and for outputs of graphics
    /// stages.
    pub fn class_of(&self, variable: u32) -> Option<litmus::StorageClass> {
        let declared = self.module().variables.get(&variable)?;
        let class = declared.class;
        if class == StorageClass::UniformConstant && is_storage_image(self.module(), declared.ty) {
            return Some(litmus::StorageClass::Image);
        }
        let is_graphics_output = class == StorageClass::Output && self.stage != Stage::Compute;
        memory_class(class).filter(|_| !is_graphics_output)
    }

    /// Returns the first variable with the same binding.
    pub fn canonical_variable(&self, variable: u32) -> u32 {
        self.canonical.get(&variable).copied().unwrap_or(variable)
    }

    /// Returns true if another variable has the same binding.
    pub fn is_shared_binding(&self, variable: u32) -> bool {
        self.canonical.values().filter(|first| **first == variable).count() > 1
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
        if self.push_bytes.is_empty() && self.is_annotated {
            return None;
        }
        let bytes = (0..8).map(|at| self.push_bytes.get(&offset.saturating_add(at)).copied().unwrap_or(0));
        Some(bytes.enumerate().fold(0, |all, (at, byte)| all | u64::from(byte) << (8 * at)))
    }

    /// Returns the initial content of a cell; `None` if unspecified.
    pub fn initial_value(&self, cell: MemoryCell) -> Result<Option<u64>, Problem> {
        if cell.has_variable_offset() {
            return Ok(Some(0));
        }
        let module = self.module();
        let variable = cell.object.variable;
        let Some(declared) = module.variables.get(&variable).copied() else { return Ok(None) };
        let mut ty = declared.ty;
        if cell.object.instance > 0 && self.is_descriptor_array(variable, ty) {
            ty = self.specialized.part_of(ty, 0)?.ty;
        }
        if let Some(initial) = self.inputs.get(&variable) {
            let value = initial_at(self.specialized, initial, ty, cell.offset)?;
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
            let Some(value) = constant_value(self.specialized, declared.initializer) else {
                return Err(malformed("an initializer that is not a constant"));
            };
            return Ok(known_number(&scalar_at(self.specialized, &value, ty, cell.offset)?));
        }
        let zero = matches!(declared.class, StorageClass::StorageBuffer | StorageClass::Uniform)
            || is_storage_image(module, declared.ty);
        Ok((zero && !self.is_annotated).then_some(0))
    }

    /// Returns the length of a runtime array at an offset of an object.
    pub fn array_length(&self, object: ObjectId, start: u64, stride: u64) -> u64 {
        let stride = stride.max(1);
        if let Some(bytes) = self.buffers.get(&object.variable) {
            return (bytes.len() as u64).saturating_sub(start) / stride;
        }
        let declared = self.module().variables.get(&object.variable);
        if let (Some(declared), Some(initial)) = (declared, self.inputs.get(&object.variable)) {
            let bytes = self.initial_array_bytes(initial, declared.ty, start);
            return bytes.map_or(u64::from(u32::MAX), |bytes| bytes / stride);
        }
        if self.is_annotated { u64::from(u32::MAX) } else { DEFAULT_BYTES.saturating_sub(start) / stride }
    }

    /// Returns the size of the array there. A view of the same buffer may have elements of another size.
    fn initial_array_bytes(&self, initial: &Initial, ty: u32, start: u64) -> Option<u64> {
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
