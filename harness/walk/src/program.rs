//! The decoded module of a walk: instructions with the slots of their operands.

use std::collections::{BTreeSet, HashMap};

use arithmetic::Instruction;
use rspirv::spirv::{Op, StorageClass};
use rustc_hash::{FxHashMap, FxHashSet};
use spirv_reader::{
    AtomicKind, CodePlace, CompositeOperation, ConstantValue, SourcePosition, Specialized, SpirvInstruction,
    SpirvModule, SpirvOperation, SpirvType, switch_cases,
};

use super::scalar_kind::ScalarKind;
use super::slots::{GLOBAL_TAG, MAX_SPLIT_COMPONENTS, Slots};
use entry_point::{Problem, malformed};

use super::bytecode::{
    AccessChainOp, AccessKinds, ArithmeticOp, BlockEdge, ConstructOp, DecodedOp, ExtractOp, ReduceOp,
};
use super::value::{ConcretePointer, ConcreteValue, Taint};

/// Upper bound on the ids of a module.
const MAX_IDS: usize = 1 << 22;
/// Code that no invocation reached because of one branch.
#[derive(Clone, Debug, Default)]
pub(super) struct SkippedCode {
    /// The blocks that the branch names, by the number of their label.
    pub targets: BTreeSet<u32>,
    /// All blocks, by the number of their label.
    pub blocks: BTreeSet<u32>,
    pub lines: BTreeSet<CodePlace>,
    /// The places of instructions with effects that other invocations can observe.
    pub effects: BTreeSet<CodePlace>,
    /// True if it ends the invocation or returns from the function.
    pub has_return: bool,
}

fn is_reached(reached: &[bool], site: u32) -> bool {
    reached.get(site as usize).copied().unwrap_or_default()
}

/// A decoded instruction.
#[derive(Clone, Copy, Debug)]
pub(super) struct DecodedInstruction<'m> {
    pub raw: SpirvInstruction,
    /// The slots of its result.
    pub result: Slots,
    pub operation: SpirvOperation<'m>,
}

/// A decoded function.
#[derive(Debug, Default)]
pub(super) struct DecodedFunction<'m> {
    /// For each slot, true if its value decides nothing (see `non_observable.rs`).
    pub non_observable: Vec<bool>,
    pub code: Vec<DecodedInstruction<'m>>,
    /// The fast-path operation of each instruction, and the operations per component.
    pub decoded: Vec<DecodedOp>,
    pub component_ops: Vec<DecodedOp>,
    pub labels: FxHashMap<u32, usize>,
    pub parameters: Vec<Slots>,
    pub slots: u32,
    /// For each loop header the merge block and the last back edge.
    pub loops: FxHashMap<u32, (u32, usize)>,
    /// The edges of the control-flow graph, also by their end blocks.
    pub edges: Vec<BlockEdge>,
    pub edge_by_blocks: FxHashMap<(u32, u32), u32>,
    /// Decoded access chains.
    pub chains: Vec<AccessChainOp>,
    /// Arithmetic without a specialized operation.
    pub arithmetic: Vec<ArithmeticOp>,
    /// Decoded extractions.
    pub extracts: Vec<ExtractOp>,
    pub constructs: Vec<ConstructOp>,
    /// Decoded reductions.
    pub reductions: Vec<ReduceOp>,
    pub access_kinds: Vec<AccessKinds>,
    /// For each instruction, the number of instructions without effect that follow.
    pub following_nops: Vec<u8>,
    /// The number of its first instruction in the module.
    pub first_site: u32,
}

/// A decoded module.
pub(super) struct DecodedProgram<'m> {
    pub module: &'m SpirvModule,
    pub specialized: &'m Specialized<'m>,
    pub functions: Vec<DecodedFunction<'m>>,
    /// True if the general path executes the arithmetic of floats.
    pub has_exact_floats: bool,
    /// Function variables whose values decide nothing.
    pub non_observable: FxHashSet<u32>,
    pub by_id: FxHashMap<u32, usize>,
    /// The slots of function variables that need no memory, and of pointers to their components.
    pub register_variables: FxHashMap<u32, Slots>,
    /// The results of exchanges that may fail although the values are equal, with their comparators.
    weak_exchanges: FxHashSet<[u32; 2]>,
    slots: Vec<Slots>,
    types: Vec<u32>,
    pub globals: Vec<ConcreteValue>,
    /// Ids of the module's variables, with their slots among the globals.
    pub variables: Vec<(u32, usize)>,
}

impl<'m> DecodedProgram<'m> {
    pub fn new(
        specialized: &'m Specialized<'m>,
        loops: &HashMap<u32, HashMap<u32, (u32, usize)>>,
        has_exact_floats: bool,
    ) -> Result<DecodedProgram<'m>, Problem> {
        let module = specialized.module;
        let bound = module.id_bound();
        if bound > MAX_IDS {
            return Err(Problem::Budget { what: "ids", bound: MAX_IDS });
        }
        let mut program = DecodedProgram {
            module,
            specialized,
            functions: Vec::new(),
            has_exact_floats,
            non_observable: FxHashSet::default(),
            by_id: FxHashMap::default(),
            register_variables: FxHashMap::default(),
            weak_exchanges: FxHashSet::default(),
            slots: vec![Slots::EMPTY; bound],
            types: vec![0; bound],
            globals: Vec::new(),
            variables: Vec::new(),
        };
        let mut constants: Vec<(&u32, u32)> =
            module.constants.iter().map(|(id, (ty, _))| (id, *ty)).collect();
        constants.sort_unstable();
        for (id, ty) in constants {
            // A large constant of zeros needs no components.
            let value = match program.constant_value(*id, ty) {
                Err(Problem::Budget { .. }) => ConcreteValue::NoBits(0),
                value => value?,
            };
            program.add_global(*id, ty, value)?;
        }
        for id in module.variables.keys() {
            let ty = module.variable_types.get(id).copied().unwrap_or(0);
            let slot = program.globals.len();
            program.variables.push((*id, slot));
            program.add_global(*id, ty, ConcreteValue::Bits(0, 0))?;
        }
        let mut site = 0;
        for (id, function) in &module.functions {
            let decoded = program.add_function(function, loops.get(id), site)?;
            site += decoded.code.len() as u32;
            program.by_id.insert(*id, program.functions.len());
            program.functions.push(decoded);
        }
        let mut functions = std::mem::take(&mut program.functions);
        for (function, source) in functions.iter_mut().zip(module.functions.values()) {
            function.find_edges(&program, &source.types);
            function.decode_instructions(&program);
        }
        program.functions = functions;
        Ok(program)
    }

    fn add_global(&mut self, id: u32, ty: u32, value: ConcreteValue) -> Result<(), Problem> {
        let index = id as usize;
        if index >= self.slots.len() {
            return Err(malformed("an id above the bound"));
        }
        self.slots[index] = Slots::consecutive(GLOBAL_TAG | self.globals.len() as u32, self.slot_count(ty));
        self.types[index] = ty;
        match value {
            ConcreteValue::Composite(parts) if self.slots[index].count > 0 => {
                self.globals.extend(parts.iter().cloned())
            }
            value => self.globals.extend(std::iter::repeat_n(value, self.slots[index].as_slice().len())),
        }
        Ok(())
    }

    /// Returns the number of slots for a vector; 0 for other types.
    pub(super) fn slot_count(&self, ty: u32) -> u8 {
        match self.module.types.get(&ty) {
            Some(SpirvType::Vector { count, .. }) if (2..=MAX_SPLIT_COMPONENTS as u32).contains(count) => {
                *count as u8
            }
            _ => 0,
        }
    }

    /// Returns the aliased slots of an instruction that only rearranges values.
    fn alias_slots(&self, instruction: &SpirvInstruction) -> Option<Slots> {
        let of = |id: u32| Some(self.slots_of(id)).filter(Slots::has_value);
        let vector = |id: u32| of(id).filter(|slots| slots.count > 0);
        let found = match self.module.operation(instruction) {
            SpirvOperation::Copy { value } => of(value)?,
            SpirvOperation::Bitcast { value } => {
                let numbers = |ty: u32| self.number_layout(ty).filter(|of| of.0 != ScalarKind::Address);
                let (from, to) = (numbers(self.type_of(value))?, numbers(instruction.ty)?);
                of(value).filter(|_| (from.1, from.2) == (to.1, to.2))?
            }
            SpirvOperation::Composite(CompositeOperation::Extract { composite, path: [index] }) => {
                Slots::consecutive(*vector(composite)?.as_slice().get(*index as usize)?, 0)
            }
            SpirvOperation::Composite(CompositeOperation::Insert { value, composite, path: [index] }) => {
                let (part, mut into) = (of(value)?.single_slot()?, vector(composite)?);
                *into.slots.get_mut(..usize::from(into.count))?.get_mut(*index as usize)? = part;
                into
            }
            SpirvOperation::Composite(CompositeOperation::Construct { parts }) => {
                let mut all = Vec::new();
                for part in parts {
                    all.extend_from_slice(of(*part)?.as_slice());
                }
                Slots::from_components(&all)?
            }
            SpirvOperation::Composite(CompositeOperation::Shuffle { first, second, components }) => {
                let both = [vector(first)?.as_slice(), vector(second)?.as_slice()].concat();
                let all = components.iter().map(|index| both.get(*index as usize).copied());
                Slots::from_components(&all.collect::<Option<Vec<_>>>()?)?
            }
            _ => return None,
        };
        (found.count == self.slot_count(instruction.ty)).then_some(found)
    }

    fn add_function(
        &mut self,
        function: &spirv_reader::SpirvFunction,
        loops: Option<&HashMap<u32, (u32, usize)>>,
        first_site: u32,
    ) -> Result<DecodedFunction<'m>, Problem> {
        let mut decoded = DecodedFunction {
            labels: function.labels.iter().map(|(id, at)| (*id, *at)).collect(),
            first_site,
            ..DecodedFunction::default()
        };
        decoded.loops = loops.into_iter().flatten().map(|(header, ends)| (*header, *ends)).collect();
        self.add_register_variables(function, &mut decoded);
        let uncopied = self.uncopied_loads(function);
        let parameters = function.parameters.iter().map(|id| (*id, None));
        let results = function.code.iter().map(|one| (one.result, Some(one)));
        let mut stored_ids = FxHashSet::default();
        for (id, instruction) in parameters.chain(results) {
            let Some(ty) = function.types.get(&id) else { continue };
            if id as usize >= self.slots.len() {
                return Err(malformed("an id above the bound"));
            }
            self.types[id as usize] = *ty;
            let aliased = uncopied.get(&id).copied();
            let aliased = aliased.or_else(|| instruction.and_then(|one| self.alias_slots(one)));
            self.slots[id as usize] = aliased.unwrap_or_else(|| {
                stored_ids.insert(id);
                let slots = Slots::consecutive(decoded.slots, self.slot_count(*ty));
                decoded.slots += slots.as_slice().len() as u32;
                slots
            });
        }
        decoded.parameters = function.parameters.iter().map(|id| self.slots_of(*id)).collect();
        let non_observable = entry_point::non_observable_ids(self.module, function, false);
        decoded.non_observable = vec![false; decoded.slots as usize];
        for instruction in function.code.iter().filter(|one| non_observable.contains(&one.result)) {
            if stored_ids.contains(&instruction.result) {
                for slot in self.slots_of(instruction.result).as_slice() {
                    decoded.non_observable[*slot as usize] = true;
                }
            }
            if instruction.op == Op::Variable {
                self.non_observable.insert(instruction.result);
                let register = self.register_variables.get(&instruction.result);
                for slot in register.iter().flat_map(|slots| slots.as_slice()) {
                    decoded.non_observable[*slot as usize] = true;
                }
            }
        }
        for instruction in &function.code {
            let result = if stored_ids.contains(&instruction.result) {
                self.slots_of(instruction.result)
            } else {
                Slots::EMPTY
            };
            let operation = self.module.operation(instruction);
            if let SpirvOperation::Atomic(access) = operation
                && let AtomicKind::CompareExchange { comparator, is_weak: true, .. } = access.kind
            {
                self.weak_exchanges.insert([instruction.result, comparator]);
            }
            decoded.code.push(DecodedInstruction { raw: *instruction, result, operation });
        }
        Ok(decoded)
    }

    /// Returns true for the comparison that computes the success of an exchange that may fail although the values are equal.
    pub fn is_weak_success(&self, instruction: Instruction, operands: &[u32]) -> bool {
        instruction == Instruction::Core(Op::IEqual)
            && operands.first_chunk().is_some_and(|pair| self.weak_exchanges.contains(pair))
    }

    /// Returns the slots of an id.
    pub fn slots_of(&self, id: u32) -> Slots {
        self.slots.get(id as usize).copied().unwrap_or(Slots::EMPTY)
    }

    /// Returns the type of an id.
    pub fn type_of(&self, id: u32) -> u32 {
        self.types.get(id as usize).copied().unwrap_or(0)
    }

    /// Returns storage class and pointee type of a pointer type.
    pub fn pointee_of(&self, ty: u32) -> Option<(StorageClass, u32)> {
        match self.module.types.get(&ty) {
            Some(SpirvType::Pointer { class, pointee: to }) => Some((*class, *to)),
            _ => None,
        }
    }

    /// Returns kind, bits and component count of a numeric type; no count for a scalar.
    pub fn number_layout(&self, ty: u32) -> Option<(ScalarKind, u32, Option<u32>)> {
        Some(match self.module.types.get(&ty)? {
            SpirvType::Bool => (ScalarKind::Bool, 32, None),
            SpirvType::Integer { bits, .. } => (ScalarKind::Integer, *bits, None),
            SpirvType::Float { bits } => (ScalarKind::Float, *bits, None),
            SpirvType::Pointer { .. } => (ScalarKind::Address, 64, None),
            SpirvType::Vector { element, count } => {
                let (kind, bits, _) = self.number_layout(*element)?;
                (kind, bits, Some(*count))
            }
            _ => return None,
        })
    }

    /// Returns the bits of a number; 32 for other values.
    pub fn number_bits(&self, id: u32) -> u32 {
        self.number_layout(self.type_of(id)).map_or(32, |of| of.1)
    }

    /// Returns the size of a type in bytes.
    pub fn type_size(&self, ty: u32) -> u64 {
        self.specialized.size_of(ty).unwrap_or(0)
    }

    /// Returns a constant as a value.
    fn constant_value(&self, id: u32, ty: u32) -> Result<ConcreteValue, Problem> {
        let value = self.specialized.constants().get(&id).ok_or_else(|| malformed("no such constant"))?;
        self.convert_constant(value, ty, 0)
    }

    fn convert_constant(&self, value: &ConstantValue, ty: u32, depth: u32) -> Result<ConcreteValue, Problem> {
        if depth > 64 {
            return Err(malformed("constants nested too deep"));
        }
        Ok(match value {
            // A cooperative matrix with all components equal, or with a list of them.
            ConstantValue::Number(_) | ConstantValue::Composite(_)
                if matches!(self.module.type_of_id(ty)?, SpirvType::Handle(_)) =>
            {
                ConcreteValue::NoBits(0)
            }
            ConstantValue::Number(bits) => ConcreteValue::Bits(*bits, 0),
            ConstantValue::Null => self.filled_value(ty, 0)?,
            ConstantValue::Undefined(_) => self.filled_value(ty, super::value::UNDEFINED)?,
            ConstantValue::Composite(parts) => {
                let parts = parts.iter().enumerate().map(|(index, part)| {
                    let inner = self.specialized.part_of(ty, index as u64)?.ty;
                    self.convert_constant(part, inner, depth + 1)
                });
                ConcreteValue::from_components(parts.collect::<Result<Vec<_>, _>>()?)
            }
        })
    }

    /// Returns a value of a type with zeros everywhere.
    pub fn filled_value(&self, ty: u32, taint: Taint) -> Result<ConcreteValue, Problem> {
        Ok(match self.module.type_of_id(ty)? {
            SpirvType::Pointer { pointee, .. } => {
                ConcreteValue::Pointer(ConcretePointer::null_pointer(*pointee, taint))
            }
            SpirvType::Bool | SpirvType::Integer { .. } | SpirvType::Float { .. } => {
                ConcreteValue::Bits(0, taint)
            }
            SpirvType::Handle(_) | SpirvType::Void | SpirvType::Function { .. } => {
                ConcreteValue::NoBits(taint)
            }
            SpirvType::Struct { members } => {
                let parts = members.iter().map(|member| self.filled_value(*member, taint));
                ConcreteValue::from_components(parts.collect::<Result<Vec<_>, _>>()?)
            }
            SpirvType::Vector { .. }
            | SpirvType::Matrix { .. }
            | SpirvType::Array { .. }
            | SpirvType::RuntimeArray { .. } => {
                let count = self.specialized.part_count(ty)?;
                let part = self.filled_value(self.specialized.part_of(ty, 0)?.ty, taint)?;
                ConcreteValue::from_components(std::iter::repeat_n(part, count))
            }
        })
    }

    /// Returns the number of instructions.
    pub fn instruction_count(&self) -> usize {
        self.functions.last().map_or(0, |last| last.first_site as usize + last.code.len())
    }

    /// Returns the source lines of entered functions that have no instruction in a reached block.
    ///
    /// Instructions that only transfer control do not count. Without a source line, an instruction counts if its effects
    /// can be observed.
    pub fn unreached_lines(&self, reached: &[bool]) -> BTreeSet<CodePlace> {
        let (mut reached_lines, mut unreached_lines) = (BTreeSet::new(), BTreeSet::new());
        for function in &self.functions {
            let entered = reached.get(function.first_site as usize).copied().unwrap_or_default();
            if !entered {
                continue;
            }
            let mut here = false;
            for (site, inst) in (function.first_site as usize..).zip(&function.code) {
                match inst.operation {
                    SpirvOperation::Label => here = reached.get(site).copied().unwrap_or_default(),
                    _ if here => _ = reached_lines.insert(inst.raw.code_place()),
                    SpirvOperation::Branch { .. }
                    | SpirvOperation::Return { value: None }
                    | SpirvOperation::Unreachable
                    | SpirvOperation::Kill { demotes: false }
                    | SpirvOperation::EmitMeshTasks { .. } => {}
                    _ if inst.raw.line == 0 && !self.has_effect(inst) => {}
                    _ => _ = unreached_lines.insert(inst.raw.code_place()),
                }
            }
        }
        unreached_lines.retain(|line| !reached_lines.contains(line));
        unreached_lines
    }

    /// Returns the blocks with an instruction on one of these lines, by the number of their label instruction.
    pub fn blocks_with_lines(&self, lines: &BTreeSet<CodePlace>) -> BTreeSet<u32> {
        let mut blocks = BTreeSet::new();
        for function in &self.functions {
            let mut block = function.first_site;
            for (site, inst) in (function.first_site..).zip(&function.code) {
                if inst.operation == SpirvOperation::Label {
                    block = site;
                } else if lines.contains(&inst.raw.code_place()) {
                    blocks.insert(block);
                }
            }
        }
        blocks
    }

    /// Returns the unreached blocks of entered functions whose effects others can observe, each with the place of such an
    /// instruction, by the number of their label instruction.
    pub fn unreached_effects(&self, reached: &[bool]) -> Vec<(u32, CodePlace)> {
        self.effects_of_entered(reached).filter(|(block, _)| !is_reached(reached, *block)).collect()
    }

    /// Returns the number of instructions with effects in reached blocks.
    pub fn count_reached_effects(&self, reached: &[bool]) -> usize {
        self.effects_of_entered(reached).filter(|(block, _)| is_reached(reached, *block)).count()
    }

    /// Returns the block and the place of each instruction with effects in entered functions.
    fn effects_of_entered(&self, reached: &[bool]) -> impl Iterator<Item = (u32, CodePlace)> {
        let entered = self.functions.iter().filter(|function| is_reached(reached, function.first_site));
        entered.flat_map(move |function| {
            let mut block = function.first_site;
            let sites = (function.first_site..).zip(&function.code);
            sites.filter_map(move |(site, inst)| {
                block = if inst.operation == SpirvOperation::Label { site } else { block };
                self.has_effect(inst).then(|| (block, inst.raw.code_place()))
            })
        })
    }

    /// Returns what no invocation reached because of the branch at a site: the blocks that begin at one of its
    /// targets.
    pub fn skipped_by_branch(&self, site: u32, reached: &[bool]) -> SkippedCode {
        let Some(function) = self.function_of(site) else { return SkippedCode::default() };
        let label_site = |label: u32| {
            function.labels.get(&label).map(|position| (label, function.first_site as usize + position))
        };
        let skipped = |label: u32| {
            label_site(label).filter(|(_, site)| !reached.get(*site).copied().unwrap_or_default())
        };
        let successors = |inst: &DecodedInstruction<'_>| match inst.operation {
            SpirvOperation::Branch { target } => vec![target],
            SpirvOperation::BranchConditional { yes, no, .. } => vec![yes, no],
            SpirvOperation::Switch { selector, default, cases } => {
                let cases = switch_cases(cases, self.number_bits(selector)).map(|case| case.target);
                std::iter::once(default).chain(cases).collect()
            }
            _ => Vec::new(),
        };
        let Some(branch) = self.instruction_at(site) else { return SkippedCode::default() };
        let mut worklist: Vec<(u32, usize)> = successors(branch).into_iter().filter_map(skipped).collect();
        let targets = worklist.iter().map(|(_, start)| *start as u32).collect();
        let mut found = SkippedCode { targets, ..SkippedCode::default() };
        while let Some((_, start)) = worklist.pop() {
            if !found.blocks.insert(start as u32) {
                continue;
            }
            let code = function.code.iter().skip(start - function.first_site as usize + 1);
            for inst in code.take_while(|inst| inst.operation != SpirvOperation::Label) {
                found.lines.insert(inst.raw.code_place());
                if self.has_effect(inst) {
                    found.effects.insert(inst.raw.code_place());
                }
                found.has_return |= inst.operation.is_terminator() && !inst.operation.is_branch();
                worklist.extend(successors(inst).into_iter().filter_map(skipped));
            }
        }
        found
    }

    /// Returns true for an instruction that may race or synchronize, or whose effects others observe, and for a call.
    fn has_effect(&self, inst: &DecodedInstruction<'_>) -> bool {
        match inst.operation {
            SpirvOperation::Store { pointer, .. } => {
                let class = self.pointee_of(self.type_of(pointer)).map(|of| of.0);
                !matches!(class, Some(StorageClass::Function | StorageClass::Private | StorageClass::Output))
            }
            // Another invocation may write what it reads.
            SpirvOperation::Load { pointer, .. } => {
                let class = self.pointee_of(self.type_of(pointer)).map(|of| of.0);
                matches!(class, Some(StorageClass::Workgroup | StorageClass::StorageBuffer))
            }
            SpirvOperation::ComputeAndStore { .. } => false,
            SpirvOperation::Subgroup(_) => true,
            operation => operation.may_change_memory(),
        }
    }

    /// Returns true for an atomic access of workgroup memory and false for a plain one; `None` for other instructions.
    pub fn workgroup_access(&self, site: u32) -> Option<bool> {
        let operation = self.instruction_at(site)?.operation;
        let (pointer, is_atomic) = if let SpirvOperation::Atomic(access) = operation {
            (access.pointer, true)
        } else if let SpirvOperation::Load { pointer, .. } | SpirvOperation::Store { pointer, .. } = operation
        {
            (pointer, false)
        } else {
            return None;
        };
        let class = self.pointee_of(self.type_of(pointer))?.0;
        (class == StorageClass::Workgroup).then_some(is_atomic)
    }

    /// Returns the function that contains a site.
    pub fn function_of(&self, site: u32) -> Option<&DecodedFunction<'m>> {
        let after = self.functions.partition_point(|function| function.first_site <= site);
        self.functions.get(after.checked_sub(1)?)
    }

    /// Returns the number of the label of the block that contains a site.
    pub fn block_of(&self, site: u32) -> Option<u32> {
        let function = self.function_of(site)?;
        let code = function.code.get(..=(site - function.first_site) as usize)?;
        let label = code.iter().rposition(|inst| inst.operation == SpirvOperation::Label)?;
        Some(function.first_site + label as u32)
    }

    /// Returns the instruction of a site.
    pub fn instruction_at(&self, site: u32) -> Option<&DecodedInstruction<'m>> {
        let function = self.function_of(site)?;
        function.code.get((site - function.first_site) as usize)
    }

    /// Returns true for the load of a vector of which the store at the same position changes a component.
    pub fn loads_for_store(&self, site: u32) -> bool {
        let store = self.instruction_at(site + 2);
        let is_store =
            |inst: &&DecodedInstruction<'_>| matches!(inst.operation, SpirvOperation::Store { .. });
        let place = store.filter(is_store).map(|store| store.raw.place);
        self.instruction_at(site).is_some_and(|load| {
            matches!(load.operation, SpirvOperation::Load { .. }) && Some(load.raw.place) == place
        })
    }

    /// Returns source line and module position of a site.
    pub fn source_place(&self, site: u32) -> (u32, SourcePosition) {
        self.instruction_at(site).map_or((0, SourcePosition::Module), |inst| (inst.raw.line, inst.raw.place))
    }
}
