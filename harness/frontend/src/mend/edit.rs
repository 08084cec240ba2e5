//! Changes in the words of a module: the shader as it would be with more order in it.

use std::collections::BTreeMap;

use litmus::StorageClass;
use rspirv::spirv::{MemoryAccess, MemorySemantics, Op, Scope, StorageClass as Class};

use crate::module::{Constant, HEADER_WORDS, Instruction, Module, Type};

/// A module with changes that are not made yet. All places are those of the module as it was read.
pub(super) struct Edit<'m> {
    module: &'m Module,
    /// What stands before an instruction, by its first word.
    before: BTreeMap<usize, Vec<u32>>,
    /// What stands for an instruction.
    instead: BTreeMap<usize, Vec<u32>>,
    decorations: Vec<u32>,
    /// Constants by their values, and the words that declare them.
    constants: BTreeMap<u32, u32>,
    declared: Vec<u32>,
    bound: u32,
}

/// An instruction in words.
fn written(op: Op, operands: &[u32]) -> Vec<u32> {
    let mut words = vec![(operands.len() as u32 + 1) << 16 | op as u32];
    words.extend(operands);
    words
}

/// The bit of memory semantics for a class.
fn storage_bits(class: StorageClass) -> u32 {
    let bits = match class {
        StorageClass::Buffer => MemorySemantics::UNIFORM_MEMORY,
        StorageClass::Workgroup => MemorySemantics::WORKGROUP_MEMORY,
        StorageClass::Image => MemorySemantics::IMAGE_MEMORY,
        StorageClass::Output => MemorySemantics::OUTPUT_MEMORY,
    };
    bits.bits()
}

/// The same with what makes the class available and visible where the model has that.
fn class_bits(module: &Module, class: StorageClass) -> u32 {
    let published = MemorySemantics::MAKE_AVAILABLE | MemorySemantics::MAKE_VISIBLE;
    storage_bits(class) | if module.vulkan { published.bits() } else { 0 }
}

/// The scope of what compilers make of a barrier that is not of the workgroup alone.
fn wide(module: &Module) -> Scope {
    if module.vulkan { Scope::QueueFamily } else { Scope::Device }
}

impl Module {
    /// Where an instruction begins among the words.
    pub(super) fn first_word(&self, instruction: &Instruction) -> usize {
        let ids = usize::from(instruction.ty != 0) + usize::from(instruction.result != 0);
        (instruction.operands.0 as usize).saturating_sub(1 + ids)
    }
}

impl<'m> Edit<'m> {
    pub fn of(module: &'m Module) -> Edit<'m> {
        Edit {
            module,
            before: BTreeMap::new(),
            instead: BTreeMap::new(),
            decorations: Vec::new(),
            constants: BTreeMap::new(),
            declared: Vec::new(),
            bound: module.bound() as u32,
        }
    }

    /// The id of a constant of 32 bits; nothing where the module has no such numbers.
    fn constant(&mut self, value: u32) -> Option<u32> {
        if let Some(id) = self.constants.get(&value) {
            return Some(*id);
        }
        let integer = |signed| Type::Integer { bits: 32, signed };
        let types = [integer(false), integer(true)];
        let of =
            |wanted: &Type| self.module.types.iter().filter(|(_, ty)| *ty == wanted).map(|(id, _)| *id).min();
        let ty = types.iter().find_map(of)?;
        let id = self.bound;
        self.bound = self.bound.checked_add(1)?;
        self.declared.extend(written(Op::Constant, &[ty, id, value]));
        self.constants.insert(value, id);
        Some(id)
    }

    /// A memory barrier that acquires and releases classes.
    pub fn memory_barrier(&mut self, at: usize, classes: &[StorageClass]) -> Option<()> {
        let bits = classes.iter().map(|class| class_bits(self.module, *class));
        let semantics = bits.fold(MemorySemantics::ACQUIRE_RELEASE.bits(), |all, bits| all | bits);
        let operands = [self.constant(wide(self.module) as u32)?, self.constant(semantics)?];
        self.before.entry(at).or_default().extend(written(Op::MemoryBarrier, &operands));
        Some(())
    }

    /// A barrier at which a workgroup or a subgroup meets.
    pub fn control_barrier(&mut self, at: usize, scope: Scope, classes: &[StorageClass]) -> Option<()> {
        let bits = classes.iter().map(|class| class_bits(self.module, *class));
        let semantics = bits.fold(MemorySemantics::ACQUIRE_RELEASE.bits(), |all, bits| all | bits);
        let (scope, semantics) = (self.constant(scope as u32)?, self.constant(semantics)?);
        self.before.entry(at).or_default().extend(written(Op::ControlBarrier, &[scope, scope, semantics]));
        Some(())
    }

    /// Declares a variable coherent, or all members of a structure. Where accesses say so themselves, each of them is changed.
    pub fn coherent(&mut self, id: u32) -> Option<()> {
        let coherent = rspirv::spirv::Decoration::Coherent as u32;
        if let Some(Type::Struct { members }) = self.module.types.get(&id) {
            for member in 0..members.len() as u32 {
                self.decorations.extend(written(Op::MemberDecorate, &[id, member, coherent]));
            }
            return Some(());
        }
        if !self.module.vulkan {
            self.decorations.extend(written(Op::Decorate, &[id, coherent]));
            return Some(());
        }
        let module = self.module;
        for function in module.functions.values() {
            for one in &function.code {
                let pointer = match (one.op, module.operands(one)) {
                    (Op::Load | Op::Store, [pointer, ..]) => *pointer,
                    // What copies, and images, have such words elsewhere.
                    (Op::CopyMemory | Op::ImageRead | Op::ImageWrite, [pointer, ..])
                        if super::walked::root(module, function, *pointer) == Some(id) =>
                    {
                        return None;
                    }
                    _ => continue,
                };
                // What is made atomic already is seen by itself.
                let atomic = self.instead.get(&module.first_word(one)).is_some_and(|words| {
                    matches!(Op::from_u32(words[0] & 0xffff), Some(Op::AtomicLoad | Op::AtomicStore))
                });
                if !atomic && super::walked::root(module, function, pointer) == Some(id) {
                    self.published(one)?;
                }
            }
        }
        Some(())
    }

    /// Makes an access available or visible, and no longer private.
    fn published(&mut self, one: &Instruction) -> Option<()> {
        let operands = self.module.operands(one);
        let fixed = if one.op == Op::Store { 2 } else { 1 };
        let mut mask = operands.get(fixed).copied().unwrap_or(0);
        let manner = match one.op {
            Op::Store => MemoryAccess::MAKE_POINTER_AVAILABLE.bits(),
            _ => MemoryAccess::MAKE_POINTER_VISIBLE.bits(),
        };
        if mask & manner != 0 {
            return Some(());
        }
        mask |= manner | MemoryAccess::NON_PRIVATE_POINTER.bits();
        let mut words: Vec<u32> = [one.ty, one.result].into_iter().filter(|id| *id != 0).collect();
        words.extend(operands.get(..fixed)?);
        words.push(mask);
        words.extend(operands.get(fixed + 1..).unwrap_or_default());
        words.push(self.constant(wide(self.module) as u32)?);
        self.instead.insert(self.module.first_word(one), written(one.op, &words));
        Some(())
    }

    /// Gives an atomic or a barrier of the Vulkan model more order; nothing where it has it, or cannot have it.
    pub fn ordered(
        &mut self,
        one: &Instruction,
        acquire: bool,
        release: bool,
        class: StorageClass,
    ) -> Option<()> {
        let position = match one.op {
            Op::MemoryBarrier => 1,
            Op::ControlBarrier => 2,
            Op::AtomicLoad if !release => 2,
            Op::AtomicStore if !acquire => 2,
            Op::AtomicLoad | Op::AtomicStore => return None,
            _ => 2,
        };
        let known = self.scalar(*self.module.operands(one).get(position)?)?;
        let full = MemorySemantics::ACQUIRE_RELEASE.bits();
        let [acquires, releases] = [MemorySemantics::ACQUIRE, MemorySemantics::RELEASE].map(|bit| bit.bits());
        let has = |bit: u32| known & (bit | full) != 0;
        let order = match (acquire || has(acquires), release || has(releases)) {
            (true, true) => full,
            (true, false) => acquires,
            (false, true) => releases,
            (false, false) => return None,
        };
        let published = |wanted: bool, bit: MemorySemantics| if wanted { bit.bits() } else { 0 };
        let more = known & !(acquires | releases | full)
            | order
            | storage_bits(class)
            | published(acquire, MemorySemantics::MAKE_VISIBLE)
            | published(release, MemorySemantics::MAKE_AVAILABLE);
        if more == known {
            return None;
        }
        let more = self.constant(more)?;
        self.with_operand(one, position, more)
    }

    /// Gives an atomic or a barrier a wider scope.
    pub fn widened(&mut self, one: &Instruction) -> Option<()> {
        let position = match one.op {
            Op::MemoryBarrier => 0,
            _ => 1,
        };
        let known = self.scalar(*self.module.operands(one).get(position)?)?;
        let narrow = [Scope::Workgroup, Scope::Subgroup, Scope::Invocation].map(|scope| scope as u32);
        if !narrow.contains(&known) {
            return None;
        }
        let scope = self.constant(wide(self.module) as u32)?;
        self.with_operand(one, position, scope)
    }

    /// Makes a load or store atomic; nothing where it is of no number of 32 bits.
    pub fn atomic(
        &mut self,
        one: &Instruction,
        types: impl Fn(u32) -> Option<u32>,
        class: Class,
    ) -> Option<()> {
        let scope = if class == Class::Workgroup { Scope::Workgroup } else { wide(self.module) };
        let operands = self.module.operands(one);
        let of = if one.op == Op::Store { types(*operands.get(1)?)? } else { one.ty };
        if !matches!(self.module.types.get(&of), Some(Type::Integer { bits: 32, .. })) {
            return None;
        }
        let (scope, relaxed) = (self.constant(scope as u32)?, self.constant(0)?);
        let words = match (one.op, operands) {
            (Op::Load, [pointer, ..]) => {
                written(Op::AtomicLoad, &[one.ty, one.result, *pointer, scope, relaxed])
            }
            (Op::Store, [pointer, value, ..]) => {
                written(Op::AtomicStore, &[*pointer, scope, relaxed, *value])
            }
            _ => return None,
        };
        self.instead.insert(self.module.first_word(one), words);
        Some(())
    }

    fn scalar(&self, id: u32) -> Option<u32> {
        match self.module.constants.get(&id)? {
            (_, Constant::Scalar(value)) => u32::try_from(*value).ok(),
            _ => None,
        }
    }

    fn with_operand(&mut self, one: &Instruction, position: usize, operand: u32) -> Option<()> {
        let first = self.module.first_word(one);
        let length = (self.module.words().get(first)? >> 16) as usize;
        let of_module = || self.module.words().get(first..first + length).map(<[u32]>::to_vec);
        let mut words = self.instead.get(&first).cloned().or_else(of_module)?;
        let behind = 1 + usize::from(one.ty != 0) + usize::from(one.result != 0);
        *words.get_mut(behind + position)? = operand;
        self.instead.insert(first, words);
        Some(())
    }

    /// The words of the module with its changes.
    pub fn made(self) -> Vec<u8> {
        let words = self.module.words();
        let mut made = words[..HEADER_WORDS].to_vec();
        made[3] = self.bound;
        let (mut at, mut decorated, mut declared) = (HEADER_WORDS, false, false);
        while let Some(first) = words.get(at) {
            let length = (first >> 16).max(1) as usize;
            let op = Op::from_u32(first & 0xffff);
            if !decorated && matches!(op, Some(Op::TypeVoid | Op::TypeBool | Op::TypeInt | Op::TypeFloat)) {
                made.extend(&self.decorations);
                decorated = true;
            }
            if !declared && op == Some(Op::Function) {
                made.extend(&self.declared);
                declared = true;
            }
            made.extend(self.before.get(&at).into_iter().flatten());
            match self.instead.get(&at) {
                Some(other) => made.extend(other),
                None => made.extend(words.get(at..at + length).unwrap_or_default()),
            }
            at += length;
        }
        made.iter().flat_map(|word| word.to_le_bytes()).collect()
    }
}
