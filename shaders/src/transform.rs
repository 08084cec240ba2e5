//! Forms of a kernel: legal transformations of its module, drawn by a seed.
//!
//! A compiler meets the same accesses behind opaque conditions, copies, loops of one turn, calls and dead
//! stores. The method is that of GraphicsFuzz (Donaldson et al., OOPSLA 2017) and spirv-fuzz (PLDI 2021).
//!
//! Every transformation keeps the executed accesses of each invocation, their order, values, memory operands
//! and uniform control flow. So every form has the allowed outcomes of its test, and a forbidden outcome is an
//! error below the module. Barriers that require uniform control flow, operations of subgroups and interlocked
//! sections are never enclosed in a selection. An access keeps its variable: the model distinguishes references.

use std::fmt;
use std::str::FromStr;

use rspirv::dr::{Block, Builder, Function, Instruction, Operand};
use rspirv::spirv::{Decoration, FunctionControl, LoopControl, Op, SelectionControl, StorageClass, Word};

/// The transformations of a seed, or some of them: `form-17`, or `form-17-0-4` for the first and the fifth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KernelForm {
    seed: u16,
    /// A bit for each step.
    steps: u16,
}

/// The prefix of the words of forms.
const PREFIX: &str = "form-";

/// Error for a word that is not a form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a form")]
pub struct ParseFormError;

impl KernelForm {
    /// An example of its word.
    pub const EXAMPLE: &'static str = "form-1";
    /// The transformations of a seed.
    const STEPS: u32 = u16::BITS;

    /// Returns the form with every transformation of a seed.
    pub fn new(seed: u16) -> KernelForm {
        KernelForm { seed, steps: u16::MAX }
    }

    /// Returns the numbers of its transformations, in the order in which they apply.
    pub fn steps(self) -> Vec<u32> {
        (0..KernelForm::STEPS).filter(|step| self.steps >> step & 1 == 1).collect()
    }

    /// Returns the form with only these of its transformations.
    #[must_use]
    pub fn with_steps(self, steps: &[u32]) -> KernelForm {
        let kept =
            steps.iter().filter(|step| **step < KernelForm::STEPS).fold(0, |all, step| all | 1 << step);
        KernelForm { steps: self.steps & kept, ..self }
    }

    /// Returns the names of its transformations.
    pub fn names(self) -> Vec<&'static str> {
        self.steps().into_iter().map(|step| self.draw(step).1.0).collect()
    }

    /// Returns the random numbers and the transformation of a step, which do not depend on the others.
    fn draw(self, step: u32) -> (Random, Transformation) {
        let mut random = Random(u64::from(self.seed) << 8 | u64::from(step));
        let transformation = TRANSFORMATIONS[random.below(TRANSFORMATIONS.len())];
        (random, transformation)
    }
}

impl FromStr for KernelForm {
    type Err = ParseFormError;

    fn from_str(word: &str) -> Result<KernelForm, ParseFormError> {
        let mut numbers = word.strip_prefix(PREFIX).ok_or(ParseFormError)?.split('-').map(str::parse);
        let form = KernelForm::new(numbers.next().and_then(Result::ok).ok_or(ParseFormError)?);
        let steps: Vec<u32> =
            numbers.map(|step| step.map(u32::from)).collect::<Result<_, _>>().map_err(|_| ParseFormError)?;
        let form = if steps.is_empty() { form } else { form.with_steps(&steps) };
        // Each form has one name.
        if form.to_string() == word { Ok(form) } else { Err(ParseFormError) }
    }
}

impl fmt::Display for KernelForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", self.seed)?;
        let steps = if self.steps == u16::MAX { Vec::new() } else { self.steps() };
        steps.iter().try_for_each(|step| write!(f, "-{step}"))
    }
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ mixed >> 31) % bound.max(1) as u64) as usize
    }
}

/// A name, and the change at a place that it draws; `None` if there is none.
type Transformation = (&'static str, fn(&mut Transformer<'_>) -> Option<()>);

const TRANSFORMATIONS: [Transformation; 14] = [
    ("split block", |t| {
        let (block, at) = t.draw_site(|_, _| true)?;
        let after = t.split(block, at)?;
        t.append(block, vec![jump(after)])
    }),
    ("opaque condition", |t| {
        let site = t.draw_site(Transformer::is_selectable)?;
        let own = t.remove(site)?;
        let mut code = Vec::new();
        let condition = t.opaque_truth(&mut code);
        t.select(site, code, condition, own, false)
    }),
    ("access in both branches", |t| {
        let site = t.draw_site(Transformer::is_selectable)?;
        let own = t.remove(site)?;
        let mut code = Vec::new();
        let bit = t.opaque_bit(&mut code);
        let zero = t.constant(0);
        let condition = t.emit(&mut code, Op::IEqual, t.bool, &[bit, zero]);
        t.select(site, code, condition, own, true)
    }),
    ("dead store", |t| {
        let (block, at) = t.draw_site(|t, own| t.is_write(own))?;
        let mut own = t.instruction((block, at))?;
        own.result_id = own.result_id.map(|_| t.builder.id());
        let code = &t.blocks()?.get(block)?.instructions;
        let rest = code.iter().skip(at).take_while(|own| !is_end(own)).count();
        let place = at + t.random.below(rest + 1);
        let mut code = Vec::new();
        let condition = t.opaque_truth(&mut code);
        t.branch((block, place), code, condition, [Vec::new(), vec![own]]).map(|_| ())
    }),
    ("loop of one turn", |t| {
        if !t.may_add_loops {
            return None;
        }
        let (block, at) = t.draw_site(|t, own| t.is_access(own) || is_barrier(own))?;
        let most = 1 + t.random.below(8);
        let blocks = t.blocks()?;
        let all = &mut blocks.get_mut(block)?.instructions;
        let count = all.iter().skip(at).take(most).take_while(|own| is_movable(own)).count();
        let mut body: Vec<Instruction> = all.drain(at..at + count).collect();
        let after = t.split(block, at)?;
        let [header, inner, next] = [t.builder.id(), t.builder.id(), t.builder.id()];
        let mut code = Vec::new();
        let leaves = t.opaque_truth(&mut code);
        code.push(jump(header));
        body.push(jump(next));
        let merge = [Operand::IdRef(after), Operand::IdRef(next), Operand::LoopControl(LoopControl::NONE)];
        let blocks = [
            new_block(header, vec![Instruction::new(Op::LoopMerge, None, None, merge.into()), jump(inner)]),
            new_block(inner, body),
            new_block(next, vec![branch_if(leaves, after, header)]),
        ];
        t.append(block, code)?;
        t.blocks()?.splice(block + 1..block + 1, blocks);
        t.loop_turns += 1;
        Some(())
    }),
    ("outlined access", |t| t.outline(FunctionControl::DONT_INLINE)),
    ("call", |t| t.outline(FunctionControl::NONE)),
    ("copy through a variable", |t| {
        let (site, ty) = t.draw_value()?;
        let variable = t.variable(ty);
        t.replace_result(site, |t, code, value| {
            code.push(store(variable, value));
            t.emit(code, Op::Load, ty, &[variable])
        })
    }),
    ("copy through a structure", |t| {
        let (site, ty) = t.draw_value()?;
        // rspirv would reuse the id of a type with a layout.
        let id = t.builder.id();
        let structure = t.builder.type_struct_id(Some(id), [t.word, ty]);
        t.copy_through_member(site, ty, structure, |t, _| t.constant(1))
    }),
    ("copy through an array", |t| {
        let (site, ty) = t.draw_value()?;
        let (id, length) = (t.builder.id(), t.constant(2));
        let array = t.builder.type_array_id(Some(id), ty, length);
        t.copy_through_member(site, ty, array, Transformer::opaque_bit)
    }),
    ("equivalent arithmetic", |t| {
        let word = t.word;
        let site = t.draw_site(|_, own| own.result_type == Some(word) && is_movable(own))?;
        t.replace_result(site, |t, code, value| {
            let (bit, one) = (t.opaque_bit(code), t.constant(1));
            let zero = t.emit(code, Op::ShiftRightLogical, word, &[bit, one]);
            let op = [Op::IAdd, Op::ISub, Op::BitwiseXor, Op::BitwiseOr][t.random.below(4)];
            t.emit(code, op, word, &[value, zero])
        })
    }),
    ("unrelated work", |t| {
        let (block, at) = t.draw_site(|_, own| is_movable(own))?;
        let variable = t.variable(t.word);
        let mut code = Vec::new();
        let bit = t.opaque_bit(&mut code);
        let old = t.emit(&mut code, Op::Load, t.word, &[variable]);
        let sum = t.emit(&mut code, Op::IAdd, t.word, &[old, bit]);
        code.push(store(variable, sum));
        t.insert((block, at), code)
    }),
    ("another pointer to the memory", |t| {
        let site = t.draw_site(|t, own| t.chain_of(own).is_some())?;
        let mut own = t.instruction(site)?;
        let mut chain = t.chain_of(&own)?;
        chain.result_id = Some(t.builder.id());
        *own.operands.first_mut()? = Operand::IdRef(chain.result_id?);
        t.remove(site)?;
        t.insert(site, vec![chain, own])
    }),
    ("reordered declarations", |t| {
        let all = &mut t.builder.module_mut().types_global_values;
        for _ in 0..all.len() {
            let at = t.random.below(all.len().saturating_sub(1));
            let uses = |own: &Instruction, id| {
                own.result_type == id || own.operands.iter().any(|operand| operand.id_ref_any() == id)
            };
            if let [first, second] = all.get(at..at + 2)?
                && !uses(second, first.result_id)
            {
                all.swap(at, at + 1);
            }
        }
        Some(())
    }),
];

/// A block and an instruction in it.
type Site = (usize, usize);

struct Transformer<'b> {
    builder: &'b mut Builder,
    random: Random,
    /// Words of the push constants that the entry block loads.
    parameters: Vec<Word>,
    /// A specialization constant of value 0.
    specialized: Option<Word>,
    /// New variables of the function.
    variables: Vec<Instruction>,
    word: Word,
    bool: Word,
    may_add_loops: bool,
    loop_turns: u32,
}

/// Applies the transformations of a form to the only function of a module. Returns the number of turns of loops
/// that one round of an invocation may have in addition.
pub(crate) fn apply(builder: &mut Builder, form: KernelForm, may_add_loops: bool) -> u32 {
    let (word, bool) = (builder.type_int(32, 0), builder.type_bool());
    let mut transformer = Transformer {
        builder,
        random: Random(0),
        parameters: Vec::new(),
        specialized: None,
        variables: Vec::new(),
        word,
        bool,
        may_add_loops,
        loop_turns: 0,
    };
    transformer.parameters = transformer.loaded_parameters();
    for step in form.steps() {
        let (random, (_, transformation)) = form.draw(step);
        transformer.random = random;
        // Kernels without a fitting place do not change.
        let _ = transformation(&mut transformer);
    }
    let Transformer { variables, loop_turns, .. } = transformer;
    if let Some(entry) = builder.module_mut().functions.first_mut().and_then(|main| main.blocks.first_mut()) {
        entry.instructions.splice(0..0, variables);
    }
    loop_turns
}

impl Transformer<'_> {
    fn blocks(&mut self) -> Option<&mut Vec<Block>> {
        self.builder.module_mut().functions.first_mut().map(|main| &mut main.blocks)
    }

    fn definition(&self, id: Word) -> Option<&Instruction> {
        let module = self.builder.module_ref();
        let code = module.functions.iter().flat_map(|function| &function.blocks);
        let mut all = module.types_global_values.iter().chain(code.flat_map(|block| &block.instructions));
        all.find(|own| own.result_id == Some(id))
    }

    fn is_global(&self, id: Word) -> bool {
        self.builder.module_ref().types_global_values.iter().any(|own| own.result_id == Some(id))
    }

    fn loaded_parameters(&self) -> Vec<Word> {
        let main = self.builder.module_ref().functions.first();
        let entry =
            main.and_then(|main| main.blocks.first()).into_iter().flat_map(|entry| &entry.instructions);
        let is_word = |own: &&Instruction| own.class.opcode == Op::Load && own.result_type == Some(self.word);
        let words =
            entry.filter(is_word).filter(|own| self.pointed_class(own) == Some(StorageClass::PushConstant));
        words.filter_map(|own| own.result_id).collect()
    }

    /// Returns the storage class of the pointer that is the first operand.
    fn pointed_class(&self, own: &Instruction) -> Option<StorageClass> {
        let pointer = self.definition(own.operands.first()?.id_ref_any()?)?.result_type?;
        match self.definition(pointer)?.operands.first()? {
            Operand::StorageClass(class) => Some(*class),
            _ => None,
        }
    }

    /// Returns true for accesses to memory that other invocations may access.
    fn is_access(&self, own: &Instruction) -> bool {
        use StorageClass::{Image, PhysicalStorageBuffer, StorageBuffer, Workgroup};
        let is_shared = |class| matches!(class, StorageBuffer | Workgroup | PhysicalStorageBuffer | Image);
        let op = own.class.opcode;
        let reads = matches!(op, Op::Load | Op::Store) || own.class.opname.starts_with("Atomic");
        reads && self.pointed_class(own).is_some_and(is_shared)
            || matches!(op, Op::ImageRead | Op::ImageWrite)
    }

    fn is_write(&self, own: &Instruction) -> bool {
        self.is_access(own) && !matches!(own.class.opcode, Op::Load | Op::AtomicLoad | Op::ImageRead)
    }

    /// Returns true for words, numbers of 32 bits and truth values, which every module may copy.
    fn is_value_type(&self, ty: Word) -> bool {
        let Some(own) = self.definition(ty) else { return false };
        own.class.opcode == Op::TypeBool
            || matches!(own.class.opcode, Op::TypeInt | Op::TypeFloat)
                && own.operands.first() == Some(&Operand::LiteralBit32(32))
    }

    /// Returns true if a selection can enclose an access.
    fn is_selectable(&self, own: &Instruction) -> bool {
        self.is_access(own) && own.result_type.is_none_or(|ty| self.is_value_type(ty))
    }

    /// Draws an instruction. It is in no entry block, loop header or continue target, which must keep their form.
    fn draw_site(&mut self, accepts: impl Fn(&Self, &Instruction) -> bool) -> Option<Site> {
        let main = self.builder.module_ref().functions.first()?;
        let merges = main.blocks.iter().flat_map(|block| &block.instructions);
        let merges = merges.filter(|own| own.class.opcode == Op::LoopMerge);
        let targets: Vec<Word> =
            merges.filter_map(|own| own.operands.get(1).and_then(Operand::id_ref_any)).collect();
        let mut sites = Vec::new();
        for (number, block) in main.blocks.iter().enumerate().skip(1) {
            let is_fixed = block.instructions.iter().any(|own| own.class.opcode == Op::LoopMerge)
                || block.label_id().is_some_and(|label| targets.contains(&label));
            let code = block.instructions.iter().enumerate().filter(|_| !is_fixed);
            let fits = |own: &Instruction| own.class.opcode != Op::Phi && !is_end(own) && accepts(self, own);
            sites.extend(code.filter(|(_, own)| fits(own)).map(|(at, _)| (number, at)));
        }
        sites.get(self.random.below(sites.len())).copied()
    }

    /// Draws an instruction whose result can be copied, with its type.
    fn draw_value(&mut self) -> Option<(Site, Word)> {
        let is_value = |t: &Self, own: &Instruction| own.result_type.is_some_and(|ty| t.is_value_type(ty));
        let site = self.draw_site(|t, own| is_movable(own) && is_value(t, own))?;
        Some((site, self.instruction(site)?.result_type?))
    }

    fn instruction(&mut self, (block, at): Site) -> Option<Instruction> {
        self.blocks()?.get(block)?.instructions.get(at).cloned()
    }

    fn remove(&mut self, (block, at): Site) -> Option<Instruction> {
        let code = &mut self.blocks()?.get_mut(block)?.instructions;
        (at < code.len()).then(|| code.remove(at))
    }

    fn insert(&mut self, (block, at): Site, code: Vec<Instruction>) -> Option<()> {
        self.blocks()?.get_mut(block)?.instructions.splice(at..at, code);
        Some(())
    }

    fn append(&mut self, block: usize, code: Vec<Instruction>) -> Option<()> {
        self.blocks()?.get_mut(block)?.instructions.extend(code);
        Some(())
    }

    fn emit(&mut self, code: &mut Vec<Instruction>, op: Op, ty: Word, operands: &[Word]) -> Word {
        let id = self.builder.id();
        code.push(Instruction::new(
            op,
            Some(ty),
            Some(id),
            operands.iter().copied().map(Operand::IdRef).collect(),
        ));
        id
    }

    fn constant(&mut self, value: u32) -> Word {
        self.builder.constant_bit32(self.word, value)
    }

    /// Declares a variable of the function.
    fn variable(&mut self, ty: Word) -> Word {
        let pointer = self.builder.type_pointer(None, StorageClass::Function, ty);
        let (id, class) = (self.builder.id(), Operand::StorageClass(StorageClass::Function));
        self.variables.push(Instruction::new(Op::Variable, Some(pointer), Some(id), vec![class]));
        id
    }

    /// Returns a uniform word that is 0 or 1, which a compiler cannot know: the last two bits of a square, or a
    /// specialization constant.
    fn opaque_bit(&mut self, code: &mut Vec<Instruction>) -> Word {
        if let Some(x) = self.parameters.get(self.random.below(self.parameters.len() + 1)).copied() {
            let square = self.emit(code, Op::IMul, self.word, &[x, x]);
            let three = self.constant(3);
            return self.emit(code, Op::BitwiseAnd, self.word, &[square, three]);
        }
        if let Some(known) = self.specialized {
            return known;
        }
        let id = self.builder.spec_constant_bit32(self.word, 0);
        self.builder.decorate(id, Decoration::SpecId, [Operand::LiteralBit32(0)]);
        self.specialized = Some(id);
        id
    }

    /// Returns a truth value that is always true.
    fn opaque_truth(&mut self, code: &mut Vec<Instruction>) -> Word {
        let (bit, two) = (self.opaque_bit(code), self.constant(2));
        self.emit(code, Op::ULessThan, self.bool, &[bit, two])
    }

    /// Moves the instructions of a block from a position on to a new block after it, and returns its label. The
    /// first half then needs an end.
    fn split(&mut self, block: usize, at: usize) -> Option<Word> {
        let label = self.builder.id();
        let blocks = self.blocks()?;
        let first = blocks.get_mut(block)?;
        let old = first.label_id()?;
        let rest = first.instructions.split_off(at);
        blocks.insert(block + 1, new_block(label, rest));
        let code = blocks.iter_mut().flat_map(|block| &mut block.instructions);
        for phi in code.filter(|own| own.class.opcode == Op::Phi) {
            let predecessors = phi.operands.iter_mut().skip(1).step_by(2);
            predecessors.filter(|id| **id == Operand::IdRef(old)).for_each(|id| *id = Operand::IdRef(label));
        }
        Some(label)
    }

    /// Inserts a selection, whose empty branch goes to its end. Returns the blocks that its end follows.
    fn branch(
        &mut self,
        (block, at): Site,
        mut code: Vec<Instruction>,
        condition: Word,
        branches: [Vec<Instruction>; 2],
    ) -> Option<[Word; 2]> {
        let after = self.split(block, at)?;
        let before = self.blocks()?.get(block)?.label_id()?;
        let labels = [self.builder.id(), self.builder.id()];
        let mut targets = [after; 2];
        let mut predecessors = [before; 2];
        let mut inner = Vec::new();
        for (number, mut own) in branches.into_iter().enumerate().filter(|(_, own)| !own.is_empty()) {
            (targets[number], predecessors[number]) = (labels[number], labels[number]);
            own.push(jump(after));
            inner.push(new_block(labels[number], own));
        }
        let merge = vec![Operand::IdRef(after), Operand::SelectionControl(SelectionControl::NONE)];
        code.push(Instruction::new(Op::SelectionMerge, None, None, merge));
        code.push(branch_if(condition, targets[0], targets[1]));
        self.append(block, code)?;
        self.blocks()?.splice(block + 1..block + 1, inner);
        Some(predecessors)
    }

    /// Executes an instruction under a condition: in one branch, or in both.
    fn select(
        &mut self,
        (block, at): Site,
        code: Vec<Instruction>,
        condition: Word,
        own: Instruction,
        in_both: bool,
    ) -> Option<()> {
        let mut copies = [own.clone(), own.clone()];
        copies.iter_mut().for_each(|copy| copy.result_id = copy.result_id.map(|_| self.builder.id()));
        let [first, second] = copies.each_ref().map(|copy| copy.result_id);
        let second = match own.result_type {
            Some(ty) if !in_both => Some(self.builder.constant_null(ty)),
            _ => second,
        };
        let [yes, no] = copies.map(|copy| vec![copy]);
        let no = if in_both { no } else { Vec::new() };
        let branches = usize::from(!no.is_empty());
        let [from_yes, from_no] = self.branch((block, at), code, condition, [yes, no])?;
        if let (Some(first), Some(second)) = (first, second) {
            let operands = [first, from_yes, second, from_no].map(Operand::IdRef);
            let phi = Instruction::new(Op::Phi, own.result_type, own.result_id, operands.into());
            self.insert((block + 2 + branches, 0), vec![phi])?;
        }
        Some(())
    }

    /// Gives the result of an instruction to code that computes the same value.
    fn replace_result(
        &mut self,
        (block, at): Site,
        recompute: impl FnOnce(&mut Self, &mut Vec<Instruction>, Word) -> Word,
    ) -> Option<()> {
        let (value, mut code) = (self.builder.id(), Vec::new());
        recompute(self, &mut code, value);
        let own = self.blocks()?.get_mut(block)?.instructions.get_mut(at)?;
        code.last_mut()?.result_id = own.result_id.replace(value);
        self.insert((block, at + 1), code)
    }

    /// Copies a result through a part of a composite variable.
    fn copy_through_member(
        &mut self,
        site: Site,
        ty: Word,
        composite: Word,
        index: impl FnOnce(&mut Self, &mut Vec<Instruction>) -> Word,
    ) -> Option<()> {
        let variable = self.variable(composite);
        let pointer = self.builder.type_pointer(None, StorageClass::Function, ty);
        self.replace_result(site, |t, code, value| {
            let index = index(t, code);
            let member = t.emit(code, Op::AccessChain, pointer, &[variable, index]);
            code.push(store(member, value));
            t.emit(code, Op::Load, ty, &[member])
        })
    }

    /// Returns the access chain from a global variable that an access goes through.
    fn chain_of(&self, own: &Instruction) -> Option<Instruction> {
        let is_pointed = self.is_access(own) && own.class.opcode != Op::ImageRead;
        let chain = self.definition(own.operands.first().filter(|_| is_pointed)?.id_ref_any()?)?;
        let is_chain =
            chain.class.opcode == Op::AccessChain && self.is_global(chain.operands.first()?.id_ref_any()?);
        is_chain.then(|| chain.clone())
    }

    /// Moves an access with its address computation to a new function.
    fn outline(&mut self, control: FunctionControl) -> Option<()> {
        let (block, at) = self.draw_site(|t, own| t.chain_of(own).is_some())?;
        let mut own = self.instruction((block, at))?;
        let mut chain = self.chain_of(&own)?;
        let mut arguments: Vec<Word> = Vec::new();
        for operand in chain.operands.iter().chain(own.operands.iter().skip(1)) {
            if let Operand::IdRef(id) = operand
                && !self.is_global(*id)
                && !arguments.contains(id)
            {
                arguments.push(*id);
            }
        }
        let types: Option<Vec<Word>> = arguments.iter().map(|id| self.definition(*id)?.result_type).collect();
        let (types, void) = (types?, self.builder.type_void());
        let ty = own.result_type.unwrap_or(void);
        let signature = self.builder.type_function(ty, types.iter().copied());
        let [function, label, pointer, result] = [(); 4].map(|()| self.builder.id());
        let mut parameters = Vec::new();
        for (argument, ty) in arguments.iter().zip(types) {
            let id = self.builder.id();
            parameters.push(Instruction::new(Op::FunctionParameter, Some(ty), Some(id), Vec::new()));
            let operands = chain.operands.iter_mut().chain(&mut own.operands);
            operands
                .filter(|own| **own == Operand::IdRef(*argument))
                .for_each(|own| *own = Operand::IdRef(id));
        }
        chain.result_id = Some(pointer);
        *own.operands.first_mut()? = Operand::IdRef(pointer);
        let called = std::iter::once(function).chain(arguments).map(Operand::IdRef).collect();
        let call_result = own.result_id.unwrap_or(result);
        let call = Instruction::new(Op::FunctionCall, Some(ty), Some(call_result), called);
        own.result_id = own.result_id.map(|_| result);
        let end = match own.result_id {
            Some(value) => Instruction::new(Op::ReturnValue, None, None, vec![Operand::IdRef(value)]),
            None => Instruction::new(Op::Return, None, None, Vec::new()),
        };
        let head = vec![Operand::FunctionControl(control), Operand::IdRef(signature)];
        self.builder.module_mut().functions.push(Function {
            def: Some(Instruction::new(Op::Function, Some(ty), Some(function), head)),
            end: Some(Instruction::new(Op::FunctionEnd, None, None, Vec::new())),
            parameters,
            blocks: vec![new_block(label, vec![chain, own, end])],
        });
        self.remove((block, at))?;
        self.insert((block, at), vec![call])
    }
}

fn new_block(label: Word, instructions: Vec<Instruction>) -> Block {
    Block { label: Some(Instruction::new(Op::Label, None, Some(label), Vec::new())), instructions }
}

fn jump(label: Word) -> Instruction {
    Instruction::new(Op::Branch, None, None, vec![Operand::IdRef(label)])
}

fn branch_if(condition: Word, yes: Word, no: Word) -> Instruction {
    Instruction::new(Op::BranchConditional, None, None, [condition, yes, no].map(Operand::IdRef).into())
}

fn store(pointer: Word, value: Word) -> Instruction {
    Instruction::new(Op::Store, None, None, [pointer, value].map(Operand::IdRef).into())
}

/// Returns true for the merge instruction and the end of a block.
fn is_end(own: &Instruction) -> bool {
    matches!(own.class.opcode, Op::SelectionMerge | Op::LoopMerge)
        || rspirv::grammar::reflect::is_block_terminator(own.class.opcode)
}

fn is_barrier(own: &Instruction) -> bool {
    matches!(own.class.opcode, Op::MemoryBarrier | Op::ControlBarrier)
}

/// Returns false for instructions whose effect depends on the invocations that execute them together.
fn is_movable(own: &Instruction) -> bool {
    let name = own.class.opname;
    !is_end(own)
        && !["Group", "BeginInvocation", "EndInvocation", "ControlBarrierA", "ControlBarrierW"]
            .iter()
            .any(|start| name.starts_with(start))
}
