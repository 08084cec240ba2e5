//! Legalization: rewrites functions into the form that lowering takes.
//!
//! It inlines all calls into the entry point, makes composite constants and private variables part of it, and
//! replaces instructions that lowering does not support.

use std::collections::{HashMap, HashSet};

use rspirv::spirv::{GlslStd450Op, Op, StorageClass};
use spirv_reader::{ConstantValue, MemoryOperands, SpirvOperation, SpirvType};

use crate::fault::Fault;
use crate::instruction::{LoadError, LocatedInstruction, malformed_module, new_instruction};
use crate::miscompile::{miscompile, miscompile_call};
use crate::module::LoadedModule;

/// The maximal call depth; SPIR-V has no recursion.
const MAX_DEPTH: u32 = 32;
/// The maximal number of instructions in the inlined function.
const MAX_BODY: usize = 100_000;
/// Marks the returns of a call that is being inlined.
const INLINED_RETURN: u32 = u32::MAX;

struct Legalizer<'l, 'm> {
    loaded: &'l mut LoadedModule<'m>,
    fault: Fault,
    next_id: u32,
    /// The entry point's variables.
    variables: Vec<LocatedInstruction>,
    /// The code of the entry point with its callees inlined.
    code: Vec<LocatedInstruction>,
    /// Access chains: the variable, and the indices from there.
    chains: HashMap<u32, (u32, Vec<u32>)>,
    /// The types of results and variables.
    types: HashMap<u32, u32>,
}

/// Returns the legalized code of the entry point, from its first label, as a compiler with a fault generates it.
pub(crate) fn legalize(
    loaded: &mut LoadedModule<'_>,
    fault: Fault,
) -> Result<Vec<LocatedInstruction>, LoadError> {
    let (module, entry) = (loaded.source(), loaded.entry);
    let results = module.functions.values().flat_map(|function| &function.code).map(|own| own.result);
    let declared = module.constants.keys().chain(module.types.keys()).chain(module.variables.keys());
    // New ids follow all ids of the module.
    let bound = results.chain(declared.copied()).max().unwrap_or(0).max(module.id_bound() as u32);
    let types = module.variable_types.iter().map(|(id, ty)| (*id, *ty)).collect();
    let mut legalizer = Legalizer {
        loaded,
        fault,
        next_id: bound.wrapping_add(1),
        variables: Vec::new(),
        code: Vec::new(),
        chains: HashMap::new(),
        types,
    };
    legalizer.inline(entry, HashMap::new(), 0)?;
    let mut code = Vec::with_capacity(legalizer.code.len());
    let inlined = std::mem::take(&mut legalizer.code);
    legalizer.types.extend(inlined.iter().filter(|own| own.ty != 0).map(|own| (own.result, own.ty)));
    for own in inlined {
        legalizer.legalize_instruction(own, &mut code)?;
    }
    let start = legalizer.build_prologue(&code)?;
    // The entry block begins with variables and their initial values.
    let at = code.iter().position(|own| own.op == Op::Label).map_or(0, |label| label + 1);
    code.splice(at..at, start);
    let next_id = legalizer.next_id;
    let mut code = miscompile(code, loaded, fault, next_id);
    for (index, own) in code.iter_mut().enumerate() {
        own.index = index;
    }
    Ok(code)
}

impl Legalizer<'_, '_> {
    fn fresh_id(&mut self) -> u32 {
        self.next_id = self.next_id.wrapping_add(1);
        self.next_id.wrapping_sub(1)
    }

    /// Returns the first instructions of the function: variables, composite constants, and values of private variables.
    fn build_prologue(&mut self, code: &[LocatedInstruction]) -> Result<Vec<LocatedInstruction>, LoadError> {
        let module = self.loaded.source();
        let mut needed: HashSet<u32> = code.iter().flat_map(LocatedInstruction::ids).collect();
        let mut start = std::mem::take(&mut self.variables);
        let mut stores = Vec::new();
        for (id, variable) in &module.variables {
            if variable.declared_class != StorageClass::Private || !needed.contains(id) {
                continue;
            }
            let ty = module.variable_types.get(id).copied().unwrap_or(0);
            start.push(new_instruction(Op::Variable, ty, *id, vec![StorageClass::Private as u32]));
            if variable.initializer != 0 {
                stores.push(new_instruction(Op::Store, 0, 0, vec![*id, variable.initializer]));
            }
        }
        needed.extend(stores.iter().flat_map(LocatedInstruction::ids));
        let mut needed: Vec<u32> =
            needed.into_iter().filter(|id| module.constants.contains_key(id)).collect();
        // A hash set has no fixed order, but the code must.
        needed.sort_unstable();
        let mut built = HashSet::new();
        for id in needed {
            if let (Some((ty, _)), Some(value)) =
                (module.constants.get(&id), self.loaded.layout.constants().get(&id).cloned())
            {
                self.build_constant(id, *ty, &value, &mut built, &mut start)?;
            }
        }
        // The initial stores use the constants that are built before them.
        start.extend(stores);
        Ok(start)
    }

    /// Builds a composite constant from its parts.
    fn build_constant(
        &mut self,
        id: u32,
        ty: u32,
        value: &ConstantValue,
        built: &mut HashSet<u32>,
        start: &mut Vec<LocatedInstruction>,
    ) -> Result<(), LoadError> {
        if !built.insert(id) {
            return Ok(());
        }
        let parts = self.loaded.add_constant(id, ty, value);
        if parts.is_empty() {
            return Ok(());
        }
        let constituents = self.loaded.constituents(id);
        let mut ids = Vec::with_capacity(parts.len());
        for (index, part) in parts.iter().enumerate() {
            let own = constituents.and_then(|ids| ids.get(index).copied());
            let own = own.unwrap_or_else(|| self.fresh_id());
            let of = self.loaded.layout.part_of(ty, index as u64)?.ty;
            self.build_constant(own, of, part, built, start)?;
            ids.push(own);
        }
        // After its parts, which are built first.
        start.push(new_instruction(Op::CompositeConstruct, ty, id, ids));
        Ok(())
    }

    /// Appends the code of a function, with fresh ids if it was called. Returns the blocks that return, with their
    /// results.
    fn inline(
        &mut self,
        function: u32,
        mut renamed_ids: HashMap<u32, u32>,
        depth: u32,
    ) -> Result<Vec<(u32, Option<u32>)>, LoadError> {
        if depth > MAX_DEPTH {
            return Err(LoadError::Unsupported("calls nested this deep".into()));
        }
        let module = self.loaded.source();
        let Some(called) = module.functions.get(&function) else {
            return Err(malformed_module(0, "a call without a function"));
        };
        // Each inlined copy of a function has fresh ids.
        if depth > 0 {
            for id in called.code.iter().map(|own| own.result).filter(|id| *id != 0) {
                let fresh = self.fresh_id();
                renamed_ids.insert(id, fresh);
            }
        }
        let (mut block, mut returns) = (0, Vec::new());
        // After an inlined call, a block continues under another label.
        let mut tails: HashMap<u32, u32> = HashMap::new();
        let first = self.code.len();
        for own in &called.code {
            if self.code.len() > MAX_BODY {
                return Err(LoadError::Unsupported("a function of this size".into()));
            }
            let mut own = LocatedInstruction {
                index: 0,
                word: module.first_word(own),
                op: own.op,
                ty: own.ty,
                result: own.result,
                operands: module.operands_of(own).to_vec(),
                selector_bits: match own.op {
                    Op::Switch => module.selector_bits(&called.types, own),
                    _ => 32,
                },
            };
            rename_ids(&mut own, &renamed_ids);
            match self.loaded.decode_instruction(&own)? {
                SpirvOperation::Nop => {}
                SpirvOperation::Label => {
                    block = own.result;
                    if depth > 0 && self.code.len() == first {
                        // The calling block ends here.
                        self.code.push(new_branch(block));
                    }
                    self.code.push(own);
                }
                SpirvOperation::Variable { initializer } => {
                    if let Some(value) = initializer {
                        self.code.push(new_instruction(Op::Store, 0, 0, vec![own.result, value]));
                        own.operands.truncate(1);
                    }
                    self.types.insert(own.result, own.ty);
                    self.variables.push(own);
                }
                SpirvOperation::Call { function, arguments } => {
                    let parameters = module.functions.get(&function).map(|function| &function.parameters);
                    let parameters = parameters.into_iter().flatten().copied();
                    let inner = parameters.zip(arguments.iter().copied()).collect();
                    let start = self.code.len();
                    let given = self.inline(function, inner, depth + 1)?;
                    let after = self.fresh_id();
                    // Each return of the callee becomes a branch to the code after the call.
                    for own in self.code.iter_mut().skip(start).filter(|own| own.op == Op::Return) {
                        if own.result == INLINED_RETURN {
                            *own = new_branch(after);
                        }
                    }
                    self.code.push(new_instruction(Op::Label, 0, after, Vec::new()));
                    let values: Option<Vec<[u32; 2]>> =
                        given.iter().map(|(from, value)| Some([(*value)?, *from])).collect();
                    if let Some(values) = values.filter(|values| !values.is_empty()) {
                        self.code.push(new_instruction(Op::Phi, own.ty, own.result, values.concat()));
                    }
                    tails.insert(block, after);
                    tails.values_mut().for_each(|tail| {
                        if *tail == block {
                            *tail = after;
                        }
                    });
                    block = after;
                }
                operation @ (SpirvOperation::Return { .. } | SpirvOperation::Unreachable) if depth > 0 => {
                    if let SpirvOperation::Return { value } = operation {
                        returns.push((block, value));
                    }
                    // Marked, so that the call can replace it by a branch.
                    self.code.push(new_instruction(Op::Return, 0, INLINED_RETURN, Vec::new()));
                }
                // It is unreachable, but every block needs a terminator that lowering supports.
                SpirvOperation::Unreachable => self.code.push(new_instruction(Op::Return, 0, 0, Vec::new())),
                _ => {
                    if depth > 0 {
                        let next_id = &mut self.next_id;
                        let fresh_id = || {
                            *next_id = next_id.wrapping_add(1);
                            next_id.wrapping_sub(1)
                        };
                        let before = miscompile_call(&mut own, self.loaded, self.fault, fresh_id);
                        self.code.extend(before);
                    }
                    self.code.push(own);
                }
            }
        }
        // At the end, because a phi may name a block that comes later.
        for own in self.code.iter_mut().skip(first).filter(|own| own.op == Op::Phi) {
            for label in own.operands.iter_mut().skip(1).step_by(2) {
                if let Some(tail) = tails.get(label) {
                    *label = *tail;
                }
            }
        }
        Ok(returns)
    }

    /// Appends an instruction, or its replacement.
    fn legalize_instruction(
        &mut self,
        mut own: LocatedInstruction,
        code: &mut Vec<LocatedInstruction>,
    ) -> Result<(), LoadError> {
        let (ty, result) = (own.ty, own.result);
        let (op, operands) = match self.loaded.decode_instruction(&own)? {
            // The integer part is stored through the pointer; the fractional part is the result.
            SpirvOperation::ComputeAndStore { instruction: GlslStd450Op::Modf, value, pointer } => {
                let (set, whole) = (own.operands.first().copied().unwrap_or(0), self.fresh_id());
                let trunc = vec![set, GlslStd450Op::Trunc as u32, value];
                code.push(new_instruction(Op::ExtInst, ty, whole, trunc));
                code.push(new_instruction(Op::Store, 0, 0, vec![pointer, whole]));
                (Op::FSub, vec![value, whole])
            }
            SpirvOperation::AccessChain { base, element: None, indices } => {
                // A chain of chains becomes one chain from the variable.
                let (root, mut all) = self.chains.get(&base).cloned().unwrap_or((base, Vec::new()));
                all.extend(indices);
                self.chains.insert(result, (root, all.clone()));
                (Op::AccessChain, std::iter::once(root).chain(all).collect())
            }
            SpirvOperation::CopyMemory { target, source, memory: [of_store, of_load] } => {
                let value = self.fresh_id();
                let pointer = self.types.get(&source).and_then(|ty| self.loaded.type_of(*ty));
                let Some(SpirvType::Pointer { pointee: ty, .. }) = pointer else {
                    let what = "OpCopyMemory of an operand that is not a pointer";
                    return Err(malformed_module(own.word, what));
                };
                // A load performs no availability operation, and a store no visibility operation.
                let of_load = MemoryOperands { available: None, ..of_load }.to_words();
                let of_store = MemoryOperands { visible: None, ..of_store }.to_words();
                code.push(new_instruction(Op::Load, *ty, value, [vec![source], of_load].concat()));
                (Op::Store, [vec![target, value], of_store].concat())
            }
            _ => {
                code.push(own);
                return Ok(());
            }
        };
        (own.op, own.operands) = (op, operands);
        code.push(own);
        Ok(())
    }
}

fn new_branch(label: u32) -> LocatedInstruction {
    new_instruction(Op::Branch, 0, 0, vec![label])
}

fn rename_ids(own: &mut LocatedInstruction, names: &HashMap<u32, u32>) {
    let new = |id: &mut u32| {
        if let Some(name) = names.get(id) {
            *id = *name;
        }
    };
    new(&mut own.result);
    for at in own.id_positions() {
        own.operands.get_mut(at).into_iter().for_each(new);
    }
}
