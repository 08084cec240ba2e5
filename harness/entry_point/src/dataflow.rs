//! A forward data-flow analysis over SSA values and local variables.
//!
//! The fixpoint of Kildall (POPL 1973, <https://doi.org/10.1145/512927.512945>) over a finite lattice of facts, with one
//! fact for each component of a vector. It is insensitive to the order of instructions and to control dependence,
//! follows calls without their context, and joins all stores to a local variable. Contents of shared memory are a
//! fact of the client.

use std::collections::HashMap;

use rspirv::spirv::{BuiltIn, Op, StorageClass};
use spirv_reader::{
    CompositeOperation, SpirvConstant, SpirvFunction, SpirvInstruction, SpirvModule, SpirvOperation,
    SpirvType,
};

/// Components that are followed separately; further ones are one with the last.
pub const COMPONENTS: usize = 4;
/// The literal of `OpVectorShuffle` for a component without a value.
const UNDEFINED_COMPONENT: usize = 0xffff_ffff;
/// The facts of the components of a value. All components of a scalar are equal.
pub type Facts<F> = [F; COMPONENTS];

/// The lattice and the transfer functions of an analysis.
pub trait Analysis {
    /// A fact about a scalar; the default is the bottom of the lattice.
    type Fact: Copy + Eq + Default;

    /// Returns the least upper bound.
    fn join(&self, first: Self::Fact, second: Self::Fact) -> Self::Fact;
    /// Returns the facts of a built-in variable, if the analysis supports it.
    fn built_in_facts(&self, built_in: BuiltIn) -> Option<Facts<Self::Fact>>;
    fn constant_fact(&self) -> Self::Fact;
    /// Returns the fact of a value that is loaded from shared memory or a resource, by its variable and address.
    fn load_fact(&self, variable: Option<u32>, address: Self::Fact) -> Self::Fact;
    /// Returns the facts of an instruction that neither moves values nor accesses memory.
    fn transfer(
        &self,
        instruction: &SpirvInstruction,
        operands: &[u32],
        facts: &[Facts<Self::Fact>],
    ) -> Facts<Self::Fact>;

    /// Returns the fact of an address whose indices have these facts.
    fn combine_indices(&self, first: Self::Fact, second: Self::Fact) -> Self::Fact {
        self.join(first, second)
    }

    fn join_components(&self, facts: Facts<Self::Fact>) -> Self::Fact {
        facts.into_iter().fold(Self::Fact::default(), |all, one| self.join(all, one))
    }
}

/// An instruction with its function and its number among the module's instructions.
#[derive(Clone, Copy)]
pub struct LocatedInstruction<'m> {
    pub site: u32,
    pub function: u32,
    pub instruction: &'m SpirvInstruction,
}

/// The facts of an entry point.
pub struct DataFlow<'m, A: Analysis> {
    pub module: &'m SpirvModule,
    pub analysis: A,
    pub code: Vec<LocatedInstruction<'m>>,
    values: HashMap<u32, Facts<A::Fact>>,
    /// The contents of local variables.
    contents: HashMap<u32, Facts<A::Fact>>,
    /// The variable or parameter that a pointer starts at.
    roots: HashMap<u32, u32>,
    /// The component of a local vector that a pointer refers to.
    components: HashMap<u32, usize>,
    /// Local variables, and pointer parameters that represent them.
    local: HashMap<u32, bool>,
    has_changed: bool,
}

impl<'m, A: Analysis> DataFlow<'m, A> {
    /// Analyzes the code of an entry point; with `reached`, only the blocks whose label is reached.
    pub fn solve(
        module: &'m SpirvModule,
        function: u32,
        reached: Option<&[bool]>,
        analysis: A,
    ) -> DataFlow<'m, A> {
        let mut flow = DataFlow {
            module,
            analysis,
            code: live_code(module, function, reached),
            values: HashMap::new(),
            contents: HashMap::new(),
            roots: HashMap::new(),
            components: HashMap::new(),
            local: HashMap::new(),
            has_changed: false,
        };
        for (id, variable) in &module.variables {
            flow.roots.insert(*id, *id);
            let built_in = module.decorations_of(*id).built_in;
            if let Some(facts) = built_in.and_then(|built_in| flow.analysis.built_in_facts(built_in)) {
                flow.contents.insert(*id, facts);
                flow.local.insert(*id, true);
            } else if variable.class == StorageClass::Private {
                flow.local.insert(*id, true);
            }
        }
        let fact = flow.analysis.constant_fact();
        flow.values.extend(module.constants.keys().map(|id| (*id, [fact; COMPONENTS])));
        // Facts only rise in a finite lattice, so the rounds end.
        loop {
            flow.has_changed = false;
            for at in 0..flow.code.len() {
                flow.transfer_instruction(flow.code[at]);
            }
            if !flow.has_changed {
                return flow;
            }
        }
    }

    pub fn facts_of(&self, id: u32) -> Facts<A::Fact> {
        self.values.get(&id).copied().unwrap_or_default()
    }

    pub fn join_of_values(&self, ids: &[u32]) -> A::Fact {
        let facts = ids.iter().map(|id| self.analysis.join_components(self.facts_of(*id)));
        facts.fold(A::Fact::default(), |all, one| self.analysis.join(all, one))
    }

    /// Returns the fact of the indices that lead to a pointer.
    pub fn address_fact(&self, pointer: u32) -> A::Fact {
        self.analysis.join_components(self.facts_of(pointer))
    }

    /// Returns the variable or parameter that a pointer starts at.
    pub fn root_of(&self, pointer: u32) -> Option<u32> {
        self.roots.get(&pointer).copied()
    }

    /// Returns true if a pointer refers to memory of one invocation.
    pub fn is_local(&self, pointer: u32) -> bool {
        self.roots.get(&pointer).is_some_and(|root| self.local.get(root).copied().unwrap_or_default())
    }

    fn transfer_instruction(&mut self, located: LocatedInstruction<'m>) {
        let (module, one) = (self.module, located.instruction);
        let operation = module.operation(one);
        match operation {
            SpirvOperation::Variable { initializer } => {
                self.set_root(one.result, one.result);
                self.local.insert(one.result, true);
                if let Some(initializer) = initializer {
                    self.join_contents(one.result, self.facts_of(initializer));
                }
            }
            SpirvOperation::AccessChain { base, element, indices } => {
                let indices: Vec<u32> = element.into_iter().chain(indices.iter().copied()).collect();
                self.follow_chain(one, base, &indices);
            }
            SpirvOperation::Load { pointer, .. } if self.is_local(pointer) => {
                let facts = self.load_local(pointer);
                self.join_value(one.result, facts);
            }
            SpirvOperation::Load { pointer, .. } => {
                let root = self.roots.get(&pointer).copied();
                let fact = self.analysis.load_fact(root, self.address_fact(pointer));
                self.join_value(one.result, [fact; COMPONENTS]);
                // A loaded handle refers to the variable of its image or sampler.
                if let Some(root) = root {
                    self.set_root(one.result, root);
                }
            }
            SpirvOperation::Store { pointer, value, .. } if self.is_local(pointer) => {
                self.store_local(pointer, self.facts_of(value));
            }
            SpirvOperation::Copy { value } => {
                if let Some(root) = self.roots.get(&value).copied() {
                    self.set_root(one.result, root);
                }
                self.join_value(one.result, self.facts_of(value));
            }
            SpirvOperation::Call { function, arguments } => self.follow_call(one, function, arguments),
            // The facts of a function are the join over its return values.
            SpirvOperation::Return { value: Some(value) } => {
                self.join_value(located.function, self.facts_of(value));
            }
            SpirvOperation::Composite(CompositeOperation::Shuffle { first, second, components }) => {
                let count = self.components_of_id(located.function, first);
                let (left, right) = (self.facts_of(first), self.facts_of(second));
                let pick = |at: usize| match components.get(at).map(|index| *index as usize) {
                    // The literal of an undefined component.
                    None | Some(UNDEFINED_COMPONENT) => A::Fact::default(),
                    Some(index) if index < count => left[index.min(COMPONENTS - 1)],
                    Some(index) => right[(index - count).min(COMPONENTS - 1)],
                };
                let facts = [pick(0), pick(1), pick(2), pick(3)];
                self.join_value(one.result, facts);
            }
            SpirvOperation::Composite(CompositeOperation::Extract { composite, path }) => {
                let composite_facts = self.facts_of(composite);
                let fact = match path {
                    [index] if self.components_of_id(located.function, composite) > 1 => {
                        composite_facts[(*index as usize).min(COMPONENTS - 1)]
                    }
                    _ => self.analysis.join_components(composite_facts),
                };
                self.join_value(one.result, [fact; COMPONENTS]);
            }
            SpirvOperation::Composite(CompositeOperation::Construct { parts })
                if parts.len() == self.type_components(one.ty) =>
            {
                let part =
                    |at: usize| parts.get(at).map_or(A::Fact::default(), |id| self.join_of_values(&[*id]));
                let facts = [part(0), part(1), part(2), part(3)];
                self.join_value(one.result, facts);
            }
            SpirvOperation::Composite(CompositeOperation::Construct { parts }) => {
                let fact = self.join_of_values(parts);
                self.join_value(one.result, [fact; COMPONENTS]);
            }
            SpirvOperation::Composite(CompositeOperation::Insert { value, composite, .. }) => {
                let fact = self.join_of_values(&[value, composite]);
                self.join_value(one.result, [fact; COMPONENTS]);
            }
            SpirvOperation::Phi { sources } => {
                for [value, _] in sources {
                    self.join_value(one.result, self.facts_of(*value));
                }
            }
            _ if one.result != 0 && one.op != Op::Label => {
                let operands = match operation {
                    SpirvOperation::Compute { operands, .. } => operands,
                    _ => module.operands_of(one),
                };
                let facts: Vec<Facts<A::Fact>> = operands.iter().map(|id| self.facts_of(*id)).collect();
                let facts = self.analysis.transfer(one, operands, &facts);
                self.join_value(one.result, facts);
            }
            _ => {}
        }
    }

    fn follow_chain(&mut self, instruction: &SpirvInstruction, base: u32, indices: &[u32]) {
        let facts = indices.iter().map(|index| self.join_of_values(&[*index]));
        let fact = facts.fold(self.address_fact(base), |all, one| self.analysis.combine_indices(all, one));
        self.join_value(instruction.result, [fact; COMPONENTS]);
        let Some(root) = self.roots.get(&base).copied() else { return };
        self.set_root(instruction.result, root);
        let constant = match indices {
            [index] => self.constant_number(*index),
            _ => None,
        };
        if let Some(index) = constant.filter(|_| root == base && self.is_vector_variable(root)) {
            self.components.insert(instruction.result, index.min(COMPONENTS - 1));
        }
    }

    fn follow_call(&mut self, instruction: &SpirvInstruction, callee: u32, arguments: &[u32]) {
        let Some(function) = self.module.functions.get(&callee) else { return };
        for (argument, parameter) in arguments.iter().zip(&function.parameters) {
            if self.is_local(*argument) {
                self.set_root(*parameter, *parameter);
                self.local.insert(*parameter, true);
                // The parameter represents the variable during the call: contents flow in and out.
                self.join_contents(*parameter, self.load_local(*argument));
                self.store_local(*argument, self.contents_of(*parameter));
            } else {
                self.join_value(*parameter, self.facts_of(*argument));
                if let Some(root) = self.roots.get(argument).copied() {
                    self.set_root(*parameter, root);
                }
            }
        }
        self.join_value(instruction.result, self.facts_of(callee));
    }

    fn load_local(&self, pointer: u32) -> Facts<A::Fact> {
        let root = self.roots.get(&pointer).copied().unwrap_or(pointer);
        let contents = self.contents_of(root);
        if root == pointer {
            return contents;
        }
        // Through another pointer than a known component, a load may see any part of the contents.
        let fact = match self.components.get(&pointer) {
            Some(component) => contents[*component],
            None => self
                .analysis
                .combine_indices(self.analysis.join_components(contents), self.address_fact(pointer)),
        };
        [fact; COMPONENTS]
    }

    fn store_local(&mut self, pointer: u32, facts: Facts<A::Fact>) {
        let root = self.roots.get(&pointer).copied().unwrap_or(pointer);
        let mut stored = facts;
        if root != pointer {
            let fact = self.analysis.join_components(facts);
            stored = match self.components.get(&pointer) {
                Some(component) => {
                    let mut one = [A::Fact::default(); COMPONENTS];
                    one[*component] = fact;
                    one
                }
                None => [fact; COMPONENTS],
            };
        }
        // A store joins: on another path, a later load may still see the earlier contents.
        self.join_contents(root, stored);
    }

    fn contents_of(&self, root: u32) -> Facts<A::Fact> {
        self.contents.get(&root).copied().unwrap_or_default()
    }

    fn join_contents(&mut self, root: u32, more: Facts<A::Fact>) {
        let known = self.contents_of(root);
        let joined = [0, 1, 2, 3].map(|at: usize| self.analysis.join(known[at], more[at]));
        if joined != known {
            self.has_changed = true;
            self.contents.insert(root, joined);
        }
    }

    fn join_value(&mut self, id: u32, more: Facts<A::Fact>) {
        let known = self.facts_of(id);
        let joined = [0, 1, 2, 3].map(|at: usize| self.analysis.join(known[at], more[at]));
        if joined != known {
            self.has_changed = true;
            self.values.insert(id, joined);
        }
    }

    /// Records where a pointer starts.
    ///
    /// For a parameter, the last call decides. Clients read only the storage class of such a root, which all calls
    /// share, and whether its buffer is written, which holds for each buffer that is passed to a function.
    fn set_root(&mut self, pointer: u32, root: u32) {
        self.has_changed |= self.roots.insert(pointer, root).is_none();
    }

    fn constant_number(&self, id: u32) -> Option<usize> {
        match self.module.constants.get(&id) {
            Some((_, SpirvConstant::Scalar(number))) => Some(*number as usize),
            _ => None,
        }
    }

    fn is_vector_variable(&self, variable: u32) -> bool {
        if self.module.decorations_of(variable).built_in.is_some() {
            return true;
        }
        let ty = self.module.functions.values().find_map(|function| function.types.get(&variable));
        let pointee = ty.and_then(|ty| match self.module.types.get(ty) {
            Some(SpirvType::Pointer { pointee: to, .. }) => Some(*to),
            _ => None,
        });
        pointee.is_some_and(|ty| self.type_components(ty) > 1)
    }

    fn components_of_id(&self, function: u32, id: u32) -> usize {
        let own = self.module.functions.get(&function).and_then(|function| function.types.get(&id));
        let known = own.or_else(|| self.module.constants.get(&id).map(|(ty, _)| ty));
        known.map_or(1, |ty| self.type_components(*ty))
    }

    fn type_components(&self, ty: u32) -> usize {
        match self.module.types.get(&ty) {
            Some(SpirvType::Vector { count, .. }) => *count as usize,
            _ => 1,
        }
    }
}

/// Returns the functions that a function may call, with itself.
pub(crate) fn called_functions(module: &SpirvModule, function: u32) -> Vec<u32> {
    let (mut all, mut at) = (vec![function], 0);
    while let Some(next) = all.get(at).and_then(|id| module.functions.get(id)) {
        for instruction in &next.code {
            if let SpirvOperation::Call { function, .. } = module.operation(instruction)
                && !all.contains(&function)
                && module.functions.contains_key(&function)
            {
                all.push(function);
            }
        }
        at += 1;
    }
    all
}

/// Returns the instructions that an entry point may execute.
fn live_code<'m>(
    module: &'m SpirvModule,
    function: u32,
    reached: Option<&[bool]>,
) -> Vec<LocatedInstruction<'m>> {
    let called = called_functions(module, function);
    let mut code = Vec::new();
    let numbered = |(id, one): (&u32, &'m SpirvFunction)| {
        one.code.iter().map(|instruction| (*id, instruction)).collect::<Vec<_>>()
    };
    let mut is_live = true;
    for (site, (function, instruction)) in (0..).zip(module.functions.iter().flat_map(numbered)) {
        if let (Op::Label, Some(reached)) = (instruction.op, reached) {
            is_live = reached.get(site as usize).copied().unwrap_or(true);
        }
        // Variables are at the start of a function's first block.
        if (is_live || instruction.op == Op::Variable) && called.contains(&function) {
            code.push(LocatedInstruction { site, function, instruction });
        }
    }
    code
}

/// Returns true for comparisons by order.
pub fn is_ordering(op: Op) -> bool {
    // OpUGreaterThan to OpSLessThanEqual, OpFOrdLessThan to OpFUnordGreaterThanEqual.
    matches!(op as u32, 172..=179 | 184..=191)
}

/// Returns true for comparisons by equality.
pub fn is_equality(op: Op) -> bool {
    // OpLogicalEqual and OpLogicalNotEqual, OpIEqual and OpINotEqual, OpFOrdEqual to OpFUnordNotEqual.
    matches!(op as u32, 164 | 165 | 170 | 171 | 180..=183)
}

/// Returns true if each component of the result depends only on the same component of the operands.
pub fn is_componentwise(op: Op) -> bool {
    // OpConvertFToU to OpFConvert, OpBitcast, OpSNegate to OpVectorTimesScalar, OpLogicalEqual to
    // OpFUnordGreaterThanEqual, OpShiftRightLogical to OpNot.
    matches!(op as u32, 109..=115 | 124 | 126..=142 | 164..=191 | 194..=200)
}

/// Returns the loops of each function: header, merge block (0 if undeclared), and last back edge.
pub fn find_loops(module: &SpirvModule) -> HashMap<u32, HashMap<u32, (u32, usize)>> {
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
