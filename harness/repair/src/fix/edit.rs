//! Edits of a module's words, such as inserted barriers and stronger semantics.

use std::collections::{BTreeMap, BTreeSet};

use litmus::{Order, Scope, Semantics, StorageClass, StorageClassSet};
use rspirv::spirv::{Decoration, ImageFormat, MemoryAccess, Op, StorageClass as Class};
use spirv_reader::{
    Decorations, HEADER_WORDS, SpirvConstant, SpirvFunction, SpirvInstruction, SpirvModule, SpirvType,
    scope_from_word, scope_word, semantics_from_word, semantics_word,
};

use entry_point::accessed_variable::root_variable;
use entry_point::update::{ImageUpdate, PlainUpdate};
use symbolic::emit::AddedSemantics;

/// A module with pending edits. All positions refer to the original module.
pub(super) struct ModuleEdit<'m> {
    module: &'m SpirvModule,
    /// Words to insert before an instruction, by its first word.
    insertions: BTreeMap<usize, Vec<u32>>,
    /// Words that replace an instruction.
    replacements: BTreeMap<usize, Vec<u32>>,
    decorations: Vec<u32>,
    /// The variables and structures that became coherent.
    coherent: BTreeSet<u32>,
    /// Constants by value, with their declarations.
    constants: BTreeMap<u32, u32>,
    declarations: Vec<u32>,
    id_bound: u32,
}

/// The position of the format among the operands of `OpTypeImage`.
const IMAGE_FORMAT: usize = 6;

/// Encodes an instruction.
fn encode_instruction(op: Op, operands: &[u32]) -> Vec<u32> {
    let mut words = vec![(operands.len() as u32 + 1) << 16 | op as u32];
    words.extend(operands);
    words
}

/// The version word of SPIR-V 1.4.
const SPIRV_1_4: u32 = 0x0001_0400;

/// The memory operands of one access of a copy.
#[derive(Clone)]
struct AccessOperands {
    mask: MemoryAccess,
    /// The operand of each bit that has one. They follow the mask in the order of its bits.
    operands: BTreeMap<u32, u32>,
}

impl AccessOperands {
    /// Reads memory operands, and returns the rest; `None` for a bit with unknown operands.
    fn read(words: &[u32]) -> Option<(AccessOperands, &[u32])> {
        let (mask, mut rest) = words.split_first().map_or((0, words), |(mask, rest)| (*mask, rest));
        let mut read = AccessOperands { mask: MemoryAccess::from_bits(mask)?, operands: BTreeMap::new() };
        let with_operand =
            MemoryAccess::ALIGNED | MemoryAccess::MAKE_POINTER_AVAILABLE | MemoryAccess::MAKE_POINTER_VISIBLE;
        let without = MemoryAccess::VOLATILE | MemoryAccess::NONTEMPORAL | MemoryAccess::NON_PRIVATE_POINTER;
        for bit in read.mask.iter().filter(|bit| !without.contains(*bit)) {
            if !with_operand.contains(bit) {
                return None;
            }
            let (operand, others) = rest.split_first()?;
            read.operands.insert(bit.bits(), *operand);
            rest = others;
        }
        Some((read, rest))
    }

    /// Returns the words of a load or a store: without the `invalid` bit, which only the other one may have, and, if
    /// there is a scope, with the `added` bit at this scope.
    fn encode(mut self, added: MemoryAccess, invalid: MemoryAccess, scope: Option<u32>) -> Vec<u32> {
        self.mask.remove(invalid);
        self.operands.remove(&invalid.bits());
        if let Some(scope) = scope.filter(|_| !self.mask.contains(added)) {
            self.mask.insert(added | MemoryAccess::NON_PRIVATE_POINTER);
            self.operands.insert(added.bits(), scope);
        }
        [self.mask.bits()].into_iter().chain(self.operands.into_values()).collect()
    }
}

/// The scope of barriers beyond the workgroup, as compilers emit it.
pub(super) const WIDEST_SCOPE: Scope = Scope::QueueFamily;

impl<'m> ModuleEdit<'m> {
    pub fn for_module(module: &'m SpirvModule) -> ModuleEdit<'m> {
        ModuleEdit {
            module,
            insertions: BTreeMap::new(),
            replacements: BTreeMap::new(),
            decorations: Vec::new(),
            coherent: BTreeSet::new(),
            constants: BTreeMap::new(),
            declarations: Vec::new(),
            id_bound: module.id_bound() as u32,
        }
    }

    /// Returns the id of a 32-bit constant; `None` if the module declares no such type.
    fn constant_id(&mut self, value: u32) -> Option<u32> {
        if let Some(id) = self.constants.get(&value) {
            return Some(*id);
        }
        let integer = |signed| SpirvType::Integer { bits: 32, signed };
        let types = [integer(false), integer(true)];
        let type_id_of = |searched: &SpirvType| {
            self.module.types.iter().filter(|(_, ty)| *ty == searched).map(|(id, _)| *id).min()
        };
        let ty = types.iter().find_map(type_id_of)?;
        let id = self.id_bound;
        self.id_bound = self.id_bound.checked_add(1)?;
        self.declarations.extend(encode_instruction(Op::Constant, &[ty, id, value]));
        self.constants.insert(value, id);
        Some(id)
    }

    fn scope_id(&mut self, scope: Scope) -> Option<u32> {
        self.constant_id(scope_word(scope, self.module.uses_vulkan_model)?)
    }

    /// Returns the id of acquire-release semantics of classes, with availability and visibility if the memory
    /// model has them.
    fn full_semantics_id(&mut self, classes: &[StorageClass]) -> Option<u32> {
        let published = self.module.uses_vulkan_model;
        self.constant_id(semantics_word(Semantics {
            order: Order::AcquireRelease,
            classes: classes.iter().copied().fold(StorageClassSet::EMPTY, StorageClassSet::with),
            make_available: published,
            make_visible: published,
            ..Semantics::RELAXED
        }))
    }

    /// Inserts an acquire-release fence for classes.
    pub fn insert_memory_barrier(&mut self, at: usize, classes: &[StorageClass]) -> Option<()> {
        let operands = [self.scope_id(WIDEST_SCOPE)?, self.full_semantics_id(classes)?];
        self.insertions.entry(at).or_default().extend(encode_instruction(Op::MemoryBarrier, &operands));
        Some(())
    }

    /// Inserts a workgroup or subgroup barrier.
    pub fn insert_control_barrier(
        &mut self,
        at: usize,
        scope: Scope,
        classes: &[StorageClass],
    ) -> Option<()> {
        let (scope, semantics) = (self.scope_id(scope)?, self.full_semantics_id(classes)?);
        self.insertions
            .entry(at)
            .or_default()
            .extend(encode_instruction(Op::ControlBarrier, &[scope, scope, semantics]));
        Some(())
    }

    /// Declares a variable or all members of a structure coherent; `None` if that is so already.
    ///
    /// If the memory model has access operands instead, every access is changed.
    pub fn make_coherent(&mut self, id: u32) -> Option<()> {
        if !self.coherent.insert(id) {
            return Some(());
        }
        let module = self.module;
        if !module.uses_vulkan_model {
            return self.decorate_coherent(id);
        }
        for function in module.functions.values() {
            let is_of = |pointer: u32| root_variable(module, function, pointer) == Some(id);
            for instruction in &function.code {
                match (instruction.op, module.operands_of(instruction)) {
                    // An access that became atomic needs no operands.
                    (Op::Load | Op::Store, [pointer, ..])
                        if is_of(*pointer) && !self.became_atomic(instruction) =>
                    {
                        self.publish_access(instruction)?;
                    }
                    (Op::CopyMemory, [target, source, ..]) if is_of(*target) || is_of(*source) => {
                        self.publish_copy(instruction, [is_of(*target), is_of(*source)])?;
                    }
                    // Sized copies and images have the operands elsewhere.
                    (Op::CopyMemorySized, [target, source, ..]) if is_of(*target) || is_of(*source) => {
                        return None;
                    }
                    (Op::ImageRead | Op::ImageWrite, [image, ..]) if is_of(*image) => return None,
                    _ => {}
                }
            }
        }
        Some(())
    }

    fn became_atomic(&self, instruction: &SpirvInstruction) -> bool {
        self.replacements.get(&self.module.first_word(instruction)).is_some_and(|words| {
            matches!(Op::from_u32(words[0] & 0xffff), Some(Op::AtomicLoad | Op::AtomicStore))
        })
    }

    /// Decorates a variable or the members of a structure; `None` if all of it is coherent or volatile already.
    fn decorate_coherent(&mut self, id: u32) -> Option<()> {
        let module = self.module;
        let coherent = Decoration::Coherent as u32;
        let is_coherent = |own: &Decorations| own.coherent || own.volatile;
        let variable = module.variables.get(&id);
        let block = variable.map_or(id, |variable| module.element_type(variable.ty));
        let members = match module.types.get(&block) {
            Some(SpirvType::Struct { members }) => members.len() as u32,
            _ => 0,
        };
        let is_coherent_member =
            |member| module.member_decorations.get(&(block, member)).is_some_and(is_coherent);
        if is_coherent(&module.decorations_of(id)) || members > 0 && (0..members).all(is_coherent_member) {
            return None;
        }
        if variable.is_some() {
            self.decorations.extend(encode_instruction(Op::Decorate, &[id, coherent]));
            return Some(());
        }
        for member in (0..members).filter(|member| !is_coherent_member(*member)) {
            self.decorations.extend(encode_instruction(Op::MemberDecorate, &[id, member, coherent]));
        }
        Some(())
    }

    /// Makes an access available or visible, and non-private.
    fn publish_access(&mut self, instruction: &SpirvInstruction) -> Option<()> {
        let operands = self.module.operands_of(instruction);
        let fixed = if instruction.op == Op::Store { 2 } else { 1 };
        let mut mask = operands.get(fixed).copied().unwrap_or(0);
        let manner = match instruction.op {
            Op::Store => MemoryAccess::MAKE_POINTER_AVAILABLE.bits(),
            _ => MemoryAccess::MAKE_POINTER_VISIBLE.bits(),
        };
        if mask & manner != 0 {
            return Some(());
        }
        mask |= manner | MemoryAccess::NON_PRIVATE_POINTER.bits();
        // A store has neither a type nor a result.
        let mut words: Vec<u32> =
            [instruction.ty, instruction.result].into_iter().filter(|id| *id != 0).collect();
        words.extend(operands.get(..fixed)?);
        words.push(mask);
        words.extend(operands.get(fixed + 1..).unwrap_or_default());
        // Operands of a mask follow in the order of its bits; availability and visibility come
        // after the alignment.
        words.push(self.scope_id(WIDEST_SCOPE)?);
        self.replacements
            .insert(self.module.first_word(instruction), encode_instruction(instruction.op, &words));
        Some(())
    }

    /// Makes the store of a copy available, and its load visible, if selected, and both non-private.
    fn publish_copy(
        &mut self,
        instruction: &SpirvInstruction,
        [store_selected, load_selected]: [bool; 2],
    ) -> Option<()> {
        // Separate operands for both accesses exist since SPIR-V 1.4.
        if *self.module.words().get(1)? < SPIRV_1_4 {
            return None;
        }
        let first = self.module.first_word(instruction);
        // An earlier change of the other access is kept.
        let pending = self.replacements.get(&first).and_then(|words| words.get(1..)).map(<[u32]>::to_vec);
        let operands = pending.unwrap_or_else(|| self.module.operands_of(instruction).to_vec());
        let (pointers, operands) = operands.split_at_checked(2)?;
        let (store, operands) = AccessOperands::read(operands)?;
        // One mask applies to both accesses.
        let load = if operands.is_empty() { store.clone() } else { AccessOperands::read(operands)?.0 };
        let scope = self.scope_id(WIDEST_SCOPE)?;
        let mut words = pointers.to_vec();
        let [available, visible] = [MemoryAccess::MAKE_POINTER_AVAILABLE, MemoryAccess::MAKE_POINTER_VISIBLE];
        words.extend(store.encode(available, visible, store_selected.then_some(scope)));
        words.extend(load.encode(visible, available, load_selected.then_some(scope)));
        self.replacements.insert(first, encode_instruction(instruction.op, &words));
        Some(())
    }

    /// Strengthens an atomic or barrier of the Vulkan model; `None` if it is as strong already, or cannot be.
    pub fn strengthen_order(&mut self, instruction: &SpirvInstruction, more: AddedSemantics) -> Option<()> {
        let position = match instruction.op {
            Op::MemoryBarrier => 1,
            Op::ControlBarrier => 2,
            // A load cannot release, and a store cannot acquire.
            Op::AtomicLoad if !more.release => 2,
            Op::AtomicStore if !more.acquire => 2,
            Op::AtomicLoad | Op::AtomicStore => return None,
            _ => 2,
        };
        let word = self.scalar_type(*self.module.operands_of(instruction).get(position)?)?;
        let known = semantics_from_word(word.into()).ok()?;
        let more = more.added_to(known);
        if more == known {
            return None;
        }
        let more = self.constant_id(word & !semantics_word(known) | semantics_word(more))?;
        self.set_operand(instruction, position, more)
    }

    /// Widens the scope of an atomic or barrier.
    pub fn widen_scope(&mut self, instruction: &SpirvInstruction) -> Option<()> {
        let position = match instruction.op {
            Op::MemoryBarrier => 0,
            _ => 1,
        };
        let known = self.scalar_type(*self.module.operands_of(instruction).get(position)?)?;
        if !scope_from_word(known.into(), self.module.uses_vulkan_model).ok()?.is_within_workgroup() {
            return None;
        }
        let scope = self.scope_id(WIDEST_SCOPE)?;
        self.set_operand(instruction, position, scope)
    }

    /// Makes a load or store atomic; `None` unless it accesses a 32-bit number.
    pub fn make_atomic(
        &mut self,
        instruction: &SpirvInstruction,
        types: impl Fn(u32) -> Option<u32>,
        class: Class,
    ) -> Option<()> {
        let scope = if class == Class::Workgroup { Scope::Workgroup } else { WIDEST_SCOPE };
        let operands = self.module.operands_of(instruction);
        let value_type = if instruction.op == Op::Store { types(*operands.get(1)?)? } else { instruction.ty };
        // Atomics of other sizes need features.
        if !matches!(self.module.types.get(&value_type), Some(SpirvType::Integer { bits: 32, .. })) {
            return None;
        }
        let (scope, relaxed) = (self.scope_id(scope)?, self.constant_id(0)?);
        let words = match (instruction.op, operands) {
            (Op::Load, [pointer, ..]) => encode_instruction(
                Op::AtomicLoad,
                &[instruction.ty, instruction.result, *pointer, scope, relaxed],
            ),
            (Op::Store, [pointer, value, ..]) => {
                encode_instruction(Op::AtomicStore, &[*pointer, scope, relaxed, *value])
            }
            _ => return None,
        };
        self.replacements.insert(self.module.first_word(instruction), words);
        Some(())
    }

    /// Replaces a load, an operation and a store by one atomic instruction.
    ///
    /// If the loaded value has other uses, the operand must be defined before the load.
    pub fn make_update(
        &mut self,
        function: &SpirvFunction,
        update: &PlainUpdate,
        class: Class,
    ) -> Option<()> {
        let module = self.module;
        let code = &function.code;
        let (load, operation, store) =
            (code.get(update.load)?, code.get(update.operation)?, code.get(update.store)?);
        let scope = if class == Class::Workgroup { Scope::Workgroup } else { WIDEST_SCOPE };
        let (scope, relaxed) = (self.scope_id(scope)?, self.constant_id(0)?);
        // Literals may look like uses, which makes the answer conservative.
        let uses = |id: u32, except: usize| {
            let others = code.iter().enumerate().filter(|(index, _)| *index != except);
            others.into_iter().any(|(_, one)| module.operands_of(one).contains(&id))
        };
        let is_used_only_here = !uses(load.result, update.operation) && !uses(operation.result, update.store);
        let result = self.id_bound;
        self.id_bound = self.id_bound.checked_add(1)?;
        let mut replace = |instruction: &SpirvInstruction, words: Vec<u32>| {
            self.replacements.insert(module.first_word(instruction), words);
        };
        // Without other uses of the values, the atomic takes the place of the store, where its
        // operand is defined. Empty words remove an instruction.
        if is_used_only_here {
            let pointer = *module.operands_of(store).first()?;
            let operands = [operation.ty, result, pointer, scope, relaxed, update.operand];
            replace(load, Vec::new());
            replace(operation, Vec::new());
            replace(store, encode_instruction(update.atomic, &operands));
            return Some(());
        }
        // Others use the loaded value, which the atomic returns, so it takes the place of the load.
        let defined = code.iter().position(|instruction| instruction.result == update.operand);
        if defined.is_some_and(|index| index >= update.load) {
            return None;
        }
        let pointer = *module.operands_of(load).first()?;
        let operands = [load.ty, load.result, pointer, scope, relaxed, update.operand];
        replace(load, encode_instruction(update.atomic, &operands));
        replace(store, Vec::new());
        Some(())
    }

    /// Replaces a read, an operation and a write of a texel by one atomic instruction.
    ///
    /// `None` unless the image has one 32-bit integer component, and if a value between read and write has other uses.
    pub fn make_image_update(&mut self, function: &SpirvFunction, update: &ImageUpdate) -> Option<()> {
        let module = self.module;
        let code = &function.code;
        let write = code.get(update.write)?;
        let [image, coordinate, ..] = module.operands_of(write) else { return None };
        let defining_instruction = |id: u32| code.iter().find(|instruction| instruction.result == id);
        let format = *module.handle_operands.get(&defining_instruction(*image)?.ty)?.get(IMAGE_FORMAT)?;
        if ![ImageFormat::R32ui as u32, ImageFormat::R32i as u32].contains(&format) {
            return None;
        }
        let chain: Vec<usize> = [Some(update.read), update.extract, Some(update.operation), update.construct]
            .into_iter()
            .flatten()
            .collect();
        let users = chain.iter().skip(1).copied().chain([update.write]);
        for (value, user) in chain.iter().zip(users) {
            let result = code.get(*value)?.result;
            let mut others = code.iter().enumerate().filter(|(index, _)| *index != user);
            // A value that is also used elsewhere would be lost.
            if others.any(|(_, one)| module.operands_of(one).contains(&result)) {
                return None;
            }
        }
        let (scope, zero) = (self.scope_id(WIDEST_SCOPE)?, self.constant_id(0)?);
        let pointer_type = self.fresh_id()?;
        let operands = [pointer_type, Class::Image as u32, update.scalar];
        self.declarations.extend(encode_instruction(Op::TypePointer, &operands));
        let (pointer, result) = (self.fresh_id()?, self.fresh_id()?);
        // The last operand is the sample: 0 without multisampling.
        let operands = [pointer_type, pointer, update.image, *coordinate, zero];
        let mut words = encode_instruction(Op::ImageTexelPointer, &operands);
        let operands = [update.scalar, result, pointer, scope, zero, update.operand];
        words.extend(encode_instruction(update.atomic, &operands));
        for index in chain {
            self.replacements.insert(module.first_word(&code[index]), Vec::new());
        }
        self.replacements.insert(module.first_word(write), words);
        Some(())
    }

    /// Initializes a module-level variable with zeros.
    pub fn zero_initialize(&mut self, id: u32) -> Option<()> {
        let variable = self.module.variables.get(&id).filter(|variable| variable.initializer == 0)?;
        let (mut at, words) = (HEADER_WORDS, self.module.words());
        let is_variable = |at: usize| {
            let first = words.get(at).copied().unwrap_or_default();
            first & 0xffff == Op::Variable as u32 && words.get(at + 2) == Some(&id)
        };
        while !is_variable(at) {
            at += (words.get(at)? >> 16).max(1) as usize;
        }
        let null = self.fresh_id()?;
        let declaration = encode_instruction(Op::ConstantNull, &[variable.ty, null]);
        self.insertions.entry(at).or_default().extend(declaration);
        let old_operands = words.get(at + 1..at + 4)?;
        let initialized =
            encode_instruction(Op::Variable, &[old_operands[0], old_operands[1], old_operands[2], null]);
        self.replacements.insert(at, initialized);
        Some(())
    }

    fn fresh_id(&mut self) -> Option<u32> {
        let id = self.id_bound;
        self.id_bound = self.id_bound.checked_add(1)?;
        Some(id)
    }

    fn scalar_type(&self, id: u32) -> Option<u32> {
        match self.module.constants.get(&id)? {
            (_, SpirvConstant::Scalar(value)) => u32::try_from(*value).ok(),
            _ => None,
        }
    }

    fn set_operand(&mut self, instruction: &SpirvInstruction, position: usize, operand: u32) -> Option<()> {
        let first = self.module.first_word(instruction);
        let length = (self.module.words().get(first)? >> 16) as usize;
        let of_module = || self.module.words().get(first..first + length).map(<[u32]>::to_vec);
        // Several changes of one instruction add up.
        let mut words = self.replacements.get(&first).cloned().or_else(of_module)?;
        // The words before the first operand: the opcode, the type and the result.
        let first_operand = 1 + usize::from(instruction.ty != 0) + usize::from(instruction.result != 0);
        *words.get_mut(first_operand + position)? = operand;
        self.replacements.insert(first, words);
        Some(())
    }

    /// Returns the bytes of the edited module.
    pub fn into_bytes(self) -> Vec<u8> {
        let words = self.module.words();
        let mut edited = words[..HEADER_WORDS].to_vec();
        // The fourth word of a header is the bound of the ids.
        edited[3] = self.id_bound;
        // In the layout of a module, decorations precede the first type, and constants the first
        // function.
        let (mut at, mut decorated, mut declared) = (HEADER_WORDS, false, false);
        while let Some(first) = words.get(at) {
            let length = (first >> 16).max(1) as usize;
            let op = Op::from_u32(first & 0xffff);
            if !decorated && matches!(op, Some(Op::TypeVoid | Op::TypeBool | Op::TypeInt | Op::TypeFloat)) {
                edited.extend(&self.decorations);
                decorated = true;
            }
            if !declared && op == Some(Op::Function) {
                edited.extend(&self.declarations);
                declared = true;
            }
            edited.extend(self.insertions.get(&at).into_iter().flatten());
            match self.replacements.get(&at) {
                Some(other) => edited.extend(other),
                None => edited.extend(words.get(at..at + length).unwrap_or_default()),
            }
            at += length;
        }
        edited.iter().flat_map(|word| word.to_le_bytes()).collect()
    }
}
