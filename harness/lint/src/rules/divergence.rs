//! Control barriers in divergent control flow, by a uniformity analysis.
//!
//! A data-flow analysis ([`entry_point::dataflow`]) finds the conditions that differ between invocations of a
//! workgroup. A barrier is reported if it depends on such a branch by control dependence (Ferrante,
//! Ottenstein and Warren, TOPLAS 1987, <https://doi.org/10.1145/24039.24041>), which covers selections, early
//! returns and loops. WGSL rejects the same programs (WGSL, section 15.2), and those whose condition depends on storage
//! that the shader may write, although naga compiles them. GLSL (4.60, 8.16) and HLSL state uniform control flow for
//! executions, not for programs.
//!
//! The rule does not report conditions that the analysis cannot classify: values from memory at the same
//! address for all invocations that the shader writes, from images and from subgroup operations, and values
//! that only a divergent branch makes differ.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use rspirv::spirv::{BuiltIn, Op, StorageClass};
use spirv_reader::{
    AtomicKind, BarrierPart, ShaderLanguage, SpirvConstant, SpirvFunction, SpirvInstruction, SpirvModule,
    SpirvOperation,
};

use entry_point::assumed::written_members;
use entry_point::dataflow::{
    Analysis, COMPONENTS, DataFlow, Facts, is_componentwise, is_equality, is_ordering,
};
use entry_point::input_place::SetBinding;

/// The inputs for which the invocations of a workgroup take different sides of a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Divergence {
    /// Invocations take different sides for every input.
    Always,
    /// Invocations take different sides for some values of uniforms or push constants.
    ForSomeInputs,
    /// WGSL does not take the condition as equal for all: it depends on storage that the shader may write (section 15.2.7).
    InWgsl,
}

/// Returns the divergent barriers of one or all entry points in module order, each with the branch that it depends on.
pub(super) fn divergent_barriers(
    module: &SpirvModule,
    function: Option<u32>,
) -> Vec<(&SpirvInstruction, &SpirvInstruction, Divergence)> {
    let entries = module.entry_points.iter().filter(|entry| function.is_none_or(|id| entry.function == id));
    let sizes = entries.filter_map(|entry| {
        let declared = module.declared_local_size(entry.function)?;
        Some((entry.function, super::smallest_local_size(module, declared)))
    });
    let mut found: BTreeMap<_, (&SpirvInstruction, &SpirvInstruction, Divergence)> = BTreeMap::new();
    for (entry, size) in sizes.filter(|(_, size)| size.iter().product::<u32>() > 1) {
        let written: HashSet<SetBinding> =
            written_members(module, entry, true).into_iter().map(|(binding, _)| binding).collect();
        let is_wgsl = module.language == Some(ShaderLanguage::Wgsl);
        for by_wgsl in [false, true].into_iter().take(1 + usize::from(is_wgsl)) {
            let analysis = UniformityAnalysis { module, size, written: written.clone(), by_wgsl };
            let flow = DataFlow::solve(module, entry, None, analysis);
            for (barrier, branch, divergence) in DivergentBarriers::new(&flow).find() {
                let divergence = if by_wgsl { Divergence::InWgsl } else { divergence };
                let known = found.entry(barrier.place).or_insert((barrier, branch, divergence));
                // `Always` is the strongest statement, so it takes precedence for every entry point.
                if divergence < known.2 {
                    *known = (barrier, branch, divergence);
                }
            }
        }
    }
    found.into_values().collect()
}

/// Returns the workgroup variables in which each invocation accesses only elements of one index, which no other invocation
/// of the workgroup has: private stacks and rows.
pub(super) fn find_unshared_variables(module: &SpirvModule) -> BTreeSet<u32> {
    let is_shared =
        |id: &u32| module.variables.get(id).is_some_and(|variable| variable.class == StorageClass::Workgroup);
    // For each variable, the positions of such an index in every access chain.
    let mut own_indices: BTreeMap<u32, BTreeSet<usize>> = BTreeMap::new();
    for entry in &module.entry_points {
        let Some(declared) = module.declared_local_size(entry.function) else { continue };
        let size = super::smallest_local_size(module, declared);
        let own_index = Range(size.iter().product());
        let analysis = UniformityAnalysis { module, size, written: HashSet::new(), by_wgsl: false };
        let flow = DataFlow::solve(module, entry.function, None, analysis);
        for located in &flow.code {
            let operation = module.operation(located.instruction);
            let SpirvOperation::AccessChain { base, element: None, indices } = operation else {
                let operands = module.operands_of(located.instruction).iter().filter(|id| is_shared(id));
                operands.for_each(|id| own_indices.entry(*id).or_default().clear());
                continue;
            };
            if is_shared(&base) {
                let own =
                    (0..indices.len()).filter(|at| flow.join_of_values(&indices[*at..=*at]) == own_index);
                let own: BTreeSet<usize> = own.collect();
                let known = own_indices.entry(base).or_insert_with(|| own.clone());
                known.retain(|at| own.contains(at));
            }
        }
    }
    own_indices.into_iter().filter(|(_, positions)| !positions.is_empty()).map(|(id, _)| id).collect()
}

/// The values of one variable across the invocations of a workgroup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Uniformity {
    /// No value reaches this place.
    #[default]
    Unreached,
    /// Equal for all invocations.
    Uniform,
    /// The numbers from 0 to one less than this, each in some invocation.
    Range(u32),
    /// Different numbers in different invocations.
    Position,
    /// Numbers that differ between invocations for some contents of memory.
    Data,
    /// A truth value that differs between invocations.
    Condition(Divergence),
    Unknown,
}

use Uniformity::{Condition, Data, Position, Range, Uniform, Unknown, Unreached};

impl Uniformity {
    fn varies(self) -> bool {
        matches!(self, Range(_) | Position)
    }
}

/// The lattice of [`Uniformity`], for one entry point.
struct UniformityAnalysis<'m> {
    module: &'m SpirvModule,
    size: [u32; 3],
    /// The buffers that the entry point writes.
    written: HashSet<SetBinding>,
    /// True to take contents of storage that is not declared read-only as different in each invocation.
    by_wgsl: bool,
}

impl UniformityAnalysis<'_> {
    fn is_update(&self, instruction: &SpirvInstruction) -> bool {
        let operation = self.module.operation(instruction);
        matches!(operation, SpirvOperation::Atomic(access) if access.kind != AtomicKind::Load)
    }

    fn constant_number(&self, id: u32) -> Option<u64> {
        match self.module.constants.get(&id) {
            Some((_, SpirvConstant::Scalar(number)))
                if self.module.decorations_of(id).specialization.is_none() =>
            {
                Some(*number)
            }
            _ => None,
        }
    }

    /// Returns the common value of all components of a constant.
    fn splat_constant(&self, id: u32) -> Option<u64> {
        match self.module.constants.get(&id) {
            Some((_, SpirvConstant::Composite(parts))) => {
                let mut numbers = parts.iter().map(|part| self.constant_number(*part));
                let first = numbers.next()??;
                numbers.all(|number| number == Some(first)).then_some(first)
            }
            _ => self.constant_number(id),
        }
    }

    fn compare(&self, op: Op, operands: &[u32], pair: [Uniformity; 2]) -> Uniformity {
        let [first, second] = pair;
        let constant = |at: usize| operands.get(at).and_then(|id| self.splat_constant(*id));
        match (first, second) {
            (Unreached, _) | (_, Unreached) => Unreached,
            (Uniform, Uniform) => Uniform,
            (Range(count), Uniform) if constant(1).is_some() => {
                Self::compare_range(op, count, constant(1).unwrap_or(0), false)
            }
            (Uniform, Range(count)) if constant(0).is_some() => {
                Self::compare_range(op, count, constant(0).unwrap_or(0), true)
            }
            // Contents of memory may be equal for all invocations.
            (Data, Uniform) | (Uniform, Data) => Condition(Divergence::ForSomeInputs),
            (varying, Uniform) | (Uniform, varying) if varying.varies() => {
                let is_constant = constant(0).is_some() || constant(1).is_some();
                // An equality separates the invocations with that number from the others; an order
                // may have one result for the whole workgroup.
                match (is_equality(op), is_constant) {
                    (true, true) => Condition(Divergence::Always),
                    (_, false) => Condition(Divergence::ForSomeInputs),
                    (false, true) => Unknown,
                }
            }
            (Condition(of), Uniform) | (Uniform, Condition(of)) => Condition(of),
            _ => Unknown,
        }
    }

    /// Compares each number below `count` with a constant.
    fn compare_range(op: Op, count: u32, constant: u64, flipped: bool) -> Uniformity {
        // An order is monotone: it has the same result for all numbers if it has for the first and
        // the last.
        let (least, last) = (0, u64::from(count) - 1);
        if is_equality(op) {
            return if constant <= last { Condition(Divergence::Always) } else { Uniform };
        }
        let is_satisfied = |number: u64| {
            let (left, right) = if flipped { (constant, number) } else { (number, constant) };
            match op {
                Op::ULessThan | Op::SLessThan => left < right,
                Op::ULessThanEqual | Op::SLessThanEqual => left <= right,
                Op::UGreaterThan | Op::SGreaterThan => left > right,
                _ => left >= right,
            }
        };
        // The signed comparisons agree for constants that are not negative.
        if constant > u64::from(i32::MAX.unsigned_abs()) {
            return Unknown;
        }
        if is_satisfied(least) == is_satisfied(last) { Uniform } else { Condition(Divergence::Always) }
    }
}

impl Analysis for UniformityAnalysis<'_> {
    type Fact = Uniformity;

    fn join(&self, first: Uniformity, second: Uniformity) -> Uniformity {
        match (first, second) {
            (Unreached, other) | (other, Unreached) => other,
            (one, other) if one == other => one,
            (one, other) if one.varies() && other.varies() => Position,
            // The result of a conditional `&&` or `||`: a constant, or the second condition.
            (Condition(_), Uniform) | (Uniform, Condition(_)) => Condition(Divergence::ForSomeInputs),
            (Condition(_), Condition(_)) => Condition(Divergence::ForSomeInputs),
            _ => Unknown,
        }
    }

    fn combine_indices(&self, first: Uniformity, second: Uniformity) -> Uniformity {
        match (first, second) {
            (Unreached, other) | (other, Unreached) | (other, Uniform) | (Uniform, other) => other,
            _ => Unknown,
        }
    }

    fn built_in_facts(&self, built_in: BuiltIn) -> Option<Facts<Uniformity>> {
        let [x, y, z] = self.size;
        let by_axis =
            |of: fn(u32) -> Uniformity| [x, y, z, z].map(|size| if size > 1 { of(size) } else { Uniform });
        Some(match built_in {
            BuiltIn::WorkgroupId
            | BuiltIn::NumWorkgroups
            | BuiltIn::WorkgroupSize
            | BuiltIn::NumSubgroups
            | BuiltIn::SubgroupSize => [Uniform; COMPONENTS],
            BuiltIn::LocalInvocationId => by_axis(Range),
            BuiltIn::GlobalInvocationId => by_axis(|_| Position),
            BuiltIn::LocalInvocationIndex => [Range(x * y * z); COMPONENTS],
            BuiltIn::SubgroupLocalInvocationId => [Position; COMPONENTS],
            _ => [Unknown; COMPONENTS],
        })
    }

    fn constant_fact(&self) -> Uniformity {
        Uniform
    }

    fn load_fact(&self, variable: Option<u32>, address: Uniformity) -> Uniformity {
        let is_fixed = |id: u32| {
            let decorations = self.module.decorations_of(id);
            let binding = (decorations.set.unwrap_or(0), decorations.binding.unwrap_or(0));
            match self.module.variables.get(&id).map(|variable| variable.class) {
                Some(StorageClass::PushConstant) => true,
                Some(StorageClass::Uniform | StorageClass::StorageBuffer) => !self.written.contains(&binding),
                _ => false,
            }
        };
        let is_writable = |id: u32| {
            let declared = self.module.variables.get(&id);
            declared.is_some_and(|variable| variable.class == StorageClass::StorageBuffer)
                && !self.module.decorations_of(id).non_writable
        };
        match address {
            Range(_) | Position => Data,
            Uniform if self.by_wgsl && variable.is_some_and(is_writable) => Data,
            Uniform | Unreached if variable.is_some_and(is_fixed) => Uniform,
            _ => Unknown,
        }
    }

    fn transfer(
        &self,
        instruction: &SpirvInstruction,
        operands: &[u32],
        facts: &[Facts<Uniformity>],
    ) -> Facts<Uniformity> {
        let first = facts.first().copied().unwrap_or_default();
        let second = facts.get(1).copied().unwrap_or_default();
        let each = |of: &dyn Fn(Uniformity, Uniformity) -> Uniformity| {
            [0, 1, 2, 3].map(|at: usize| of(first[at], second[at]))
        };
        match instruction.op {
            op if is_ordering(op) || is_equality(op) => {
                each(&|first, second| self.compare(op, operands, [first, second]))
            }
            Op::LogicalNot
            | Op::Bitcast
            | Op::UConvert
            | Op::SConvert
            | Op::ConvertUToF
            | Op::ConvertSToF => first,
            Op::LogicalAnd | Op::LogicalOr => each(&|first, second| match (first, second) {
                (Unreached, _) | (_, Unreached) => Unreached,
                (Uniform, Uniform) => Uniform,
                (Unknown, _) | (_, Unknown) => Unknown,
                // The other operand may decide the result.
                _ => Condition(Divergence::ForSomeInputs),
            }),
            Op::Any | Op::All => {
                let count = match first {
                    [one, two, three, ..] if one == two && two == three => 1,
                    _ => COMPONENTS,
                };
                [first.into_iter().take(count).fold(Unreached, |all, one| self.join(all, one)); COMPONENTS]
            }
            Op::IAdd | Op::ISub | Op::FAdd | Op::FSub | Op::BitwiseXor => {
                each(&|first, second| match (first, second) {
                    (Unreached, _) | (_, Unreached) => Unreached,
                    (Uniform, Uniform) => Uniform,
                    (varying, Uniform) | (Uniform, varying) if varying.varies() => Position,
                    (Data, Uniform) | (Uniform, Data) => Data,
                    _ => Unknown,
                })
            }
            Op::IMul | Op::FMul | Op::ShiftLeftLogical | Op::BitwiseAnd | Op::UMod | Op::SMod | Op::SRem => {
                // An input that is a factor, mask or modulus may make all numbers equal.
                let scaled = |at: usize| match operands.get(at).and_then(|id| self.splat_constant(*id)) {
                    None => Data,
                    Some(number) => {
                        // Neighbouring numbers must stay different.
                        let is_kept = match instruction.op {
                            Op::BitwiseAnd => number & 1 != 0,
                            Op::UMod | Op::SMod | Op::SRem => number > 1,
                            Op::ShiftLeftLogical => number < 32,
                            _ => number != 0,
                        };
                        if is_kept { Position } else { Unknown }
                    }
                };
                each(&|first, second| match (first, second) {
                    (Unreached, _) | (_, Unreached) => Unreached,
                    (Uniform, Uniform) => Uniform,
                    (varying, Uniform) if varying.varies() => scaled(1),
                    (Uniform, varying)
                        if varying.varies()
                            && matches!(instruction.op, Op::IMul | Op::FMul | Op::BitwiseAnd) =>
                    {
                        scaled(0)
                    }
                    _ => Unknown,
                })
            }
            // An atomic that may change a word returns another number to each invocation.
            _ if self.is_update(instruction) => [Data; COMPONENTS],
            op => {
                let is_uniform = |facts: &Facts<Uniformity>| facts.iter().all(|one| *one == Uniform);
                let is_uniform_query = match op {
                    Op::ArrayLength | Op::ImageQuerySize | Op::ImageQueryLevels | Op::ImageQuerySamples => {
                        true
                    }
                    // The image has no facts, and the level has.
                    Op::ImageQuerySizeLod => is_uniform(&second),
                    _ => false,
                };
                let known = is_componentwise(op) || op == Op::CopyLogical;
                if is_uniform_query || known && facts.iter().all(is_uniform) {
                    [Uniform; COMPONENTS]
                } else {
                    [Unknown; COMPONENTS]
                }
            }
        }
    }
}

/// The search for divergent barriers over the facts of one entry point.
struct DivergentBarriers<'f, 'm> {
    flow: &'f DataFlow<'m, UniformityAnalysis<'m>>,
    module: &'m SpirvModule,
    /// The functions that execute a workgroup barrier, also by calls.
    with_barriers: BTreeSet<u32>,
}

impl<'f, 'm> DivergentBarriers<'f, 'm> {
    fn new(flow: &'f DataFlow<'m, UniformityAnalysis<'m>>) -> DivergentBarriers<'f, 'm> {
        let module = flow.module;
        let mut with_barriers: BTreeSet<u32> = BTreeSet::new();
        loop {
            // A fixpoint, because calls may come before the code of the called function.
            let before = with_barriers.len();
            for at in &flow.code {
                if is_barrier(module, at.instruction, &with_barriers) {
                    with_barriers.insert(at.function);
                }
            }
            if with_barriers.len() == before {
                return DivergentBarriers { flow, module, with_barriers };
            }
        }
    }

    fn find(&self) -> Vec<(&'m SpirvInstruction, &'m SpirvInstruction, Divergence)> {
        let mut found = Vec::new();
        for function in &self.with_barriers {
            if let Some(code) = self.module.functions.get(function) {
                found.extend(self.find_in_function(code));
            }
        }
        found
    }

    fn find_in_function(
        &self,
        function: &'m SpirvFunction,
    ) -> Vec<(&'m SpirvInstruction, &'m SpirvInstruction, Divergence)> {
        let graph = ControlFlow::from_function(self.module, function);
        let dependence = graph.control_dependence();
        let mut found = Vec::new();
        for (block, range) in graph.blocks.iter().enumerate() {
            let code = &function.code[range.clone()];
            let barriers = code.iter().filter(|one| is_barrier(self.module, one, &self.with_barriers));
            for barrier in barriers {
                let divergent = dependence[block].iter().filter_map(|branch| {
                    // The last instruction of a block is its branch.
                    let branch = function.code.get(graph.blocks[*branch].end.checked_sub(1)?)?;
                    Some((branch, self.divergence_of(branch)?))
                });
                if let Some((branch, divergence)) = divergent.min_by_key(|(_, divergence)| *divergence) {
                    found.push((barrier, branch, divergence));
                }
            }
        }
        found
    }

    fn divergence_of(&self, branch: &SpirvInstruction) -> Option<Divergence> {
        let SpirvOperation::BranchConditional { condition, .. } = self.module.operation(branch) else {
            return None;
        };
        match self.flow.join_of_values(&[condition]) {
            Condition(divergence) => Some(divergence),
            _ => None,
        }
    }
}

/// Returns true for a control barrier of a workgroup, and for a call of a function with one.
fn is_barrier(module: &SpirvModule, instruction: &SpirvInstruction, with_barriers: &BTreeSet<u32>) -> bool {
    match module.operation(instruction) {
        SpirvOperation::ControlBarrier { part: BarrierPart::Whole, execution, .. } => {
            // 2 is the scope `Workgroup`.
            matches!(module.constants.get(&execution), Some((_, SpirvConstant::Scalar(2))))
        }
        SpirvOperation::Call { function, .. } => with_barriers.contains(&function),
        _ => false,
    }
}

/// The control-flow graph of a function.
struct ControlFlow {
    /// The instructions of each block.
    blocks: Vec<std::ops::Range<usize>>,
    /// The successors of each block; none for a block that ends the function.
    successors: Vec<Vec<usize>>,
}

impl ControlFlow {
    fn from_function(module: &SpirvModule, function: &SpirvFunction) -> ControlFlow {
        let mut starts: Vec<(u32, usize)> = function.labels.iter().map(|(id, at)| (*id, *at)).collect();
        starts.sort_unstable_by_key(|(_, at)| *at);
        let number: HashMap<u32, usize> =
            starts.iter().enumerate().map(|(block, (id, _))| (*id, block)).collect();
        let is_end = |instruction: &SpirvInstruction| module.operation(instruction).is_terminator();
        let mut blocks = Vec::new();
        let mut successors = Vec::new();
        for (_, start) in &starts {
            let code = function.code.get(*start..).unwrap_or_default();
            let length = code.iter().position(is_end).map_or(code.len(), |end| end + 1);
            blocks.push(*start..*start + length);
            let targets = code.get(length.saturating_sub(1));
            let targets = targets.into_iter().flat_map(|end| module.successors(&function.types, end));
            successors.push(targets.filter_map(|target| number.get(&target).copied()).collect());
        }
        ControlFlow { blocks, successors }
    }

    /// Returns for each block the blocks whose branch decides whether it is executed, transitively.
    fn control_dependence(&self) -> Vec<BTreeSet<usize>> {
        let postdominators = self.postdominators();
        let directly = |block: usize| {
            let decides_execution = |(branch, targets): &(usize, &Vec<usize>)| {
                // A block depends on a branch if it post-dominates a target of the branch, but does
                // not strictly post-dominate the branch itself.
                let strictly = block != *branch && postdominators[*branch].contains(&block);
                targets.len() > 1
                    && !strictly
                    && targets.iter().any(|target| postdominators[*target].contains(&block))
            };
            self.successors.iter().enumerate().filter(decides_execution).map(|(branch, _)| branch).collect()
        };
        let direct: Vec<BTreeSet<usize>> = (0..self.blocks.len()).map(directly).collect();
        let transitively = |block: usize| {
            let mut all = direct[block].clone();
            let mut left: Vec<usize> = all.iter().copied().collect();
            while let Some(branch) = left.pop() {
                left.extend(direct[branch].iter().copied().filter(|other| all.insert(*other)));
            }
            all
        };
        (0..self.blocks.len()).map(transitively).collect()
    }

    /// Returns the blocks on every path from each block to the end of the function, itself included.
    fn postdominators(&self) -> Vec<HashSet<usize>> {
        let count = self.blocks.len();
        let all: HashSet<usize> = (0..count).collect();
        // The greatest solution: every set starts full and shrinks. Blocks that end the function
        // have no path to others.
        let mut postdominator_sets: Vec<HashSet<usize>> = (0..count)
            .map(|block| if self.successors[block].is_empty() { HashSet::from([block]) } else { all.clone() })
            .collect();
        loop {
            let mut changed = false;
            for block in (0..count).rev().filter(|block| !self.successors[*block].is_empty()) {
                let mut targets = self.successors[block].iter().map(|target| &postdominator_sets[*target]);
                let Some(first) = targets.next() else { continue };
                let mut common = targets.fold(first.clone(), |all, one| &all & one);
                common.insert(block);
                if common != postdominator_sets[block] {
                    postdominator_sets[block] = common;
                    changed = true;
                }
            }
            if !changed {
                return postdominator_sets;
            }
        }
    }
}
