//! Loops that may wait for another invocation: an iteration only reads memory, and leaves everything as it was.
//!
//! A loop is reported if a path from its header back to it reads a buffer by an atomic and changes nothing: it stores
//! nothing to memory, and to local variables only what does not depend on local variables. So a loop that counts, and a
//! read-modify-write that is tried again with the value it has seen, do not wait. Loops that call functions and loops in
//! SSA form whose phis change are not reported.

use std::collections::{HashMap, HashSet};

use rspirv::spirv::StorageClass;
use spirv_reader::{
    AtomicAccess, AtomicKind, MemoryEffect, SpirvConstant, SpirvFunction, SpirvInstruction, SpirvModule,
    SpirvOperation, SpirvType,
};

use entry_point::assumed::reachable_functions;

/// Returns the atomics that such loops of an entry point wait for.
pub fn awaited_atomics(module: &SpirvModule, entry: u32) -> Vec<&SpirvInstruction> {
    let functions = reachable_functions(module, entry);
    functions.flat_map(|function| FunctionLoops { module, function }.awaited_atomics()).collect()
}

#[derive(Clone, Copy)]
struct FunctionLoops<'m> {
    module: &'m SpirvModule,
    function: &'m SpirvFunction,
}

impl<'m> FunctionLoops<'m> {
    fn awaited_atomics(self) -> Vec<&'m SpirvInstruction> {
        let mut found = Vec::new();
        let mut header = 0;
        for instruction in &self.function.code {
            match self.module.operation(instruction) {
                SpirvOperation::Label => header = instruction.result,
                SpirvOperation::LoopMerge { merge, .. } => found.extend(self.awaited_atomic(header, merge)),
                _ => {}
            }
        }
        found
    }

    /// Returns the instructions of a block and the blocks that follow it.
    fn block(self, label: u32) -> (&'m [SpirvInstruction], Vec<u32>) {
        let code = &self.function.code;
        let start = self.function.labels.get(&label).map_or(code.len(), |at| at + 1);
        let is_label = |one: &SpirvInstruction| self.module.operation(one) == SpirvOperation::Label;
        let end = code[start..].iter().position(is_label).map_or(code.len(), |length| start + length);
        let successors = |one| self.module.successors(&self.function.types, one).collect();
        (&code[start..end], code[start..end].last().map_or_else(Vec::new, successors))
    }

    /// Returns the atomic that a loop waits for, if any.
    fn awaited_atomic(self, header: u32, merge: u32) -> Option<&'m SpirvInstruction> {
        let mut body: HashMap<u32, (&[SpirvInstruction], Vec<u32>)> = HashMap::new();
        let mut worklist = vec![header];
        while let Some(label) = worklist.pop() {
            if label != merge && !body.contains_key(&label) {
                let block = self.block(label);
                worklist.extend(&block.1);
                body.insert(label, block);
            }
        }
        let code = || body.values().flat_map(|(code, _)| code.iter());
        let results: HashMap<u32, &SpirvInstruction> =
            code().filter(|one| one.result != 0).map(|one| (one.result, one)).collect();
        let stored: HashSet<u32> = code().filter_map(|one| self.stored_local(one)).collect();
        let iteration = LoopIteration { of: self, results, stored };
        let idle: HashSet<u32> = body
            .iter()
            .filter(|(_, (code, _))| code.iter().all(|one| iteration.is_idle(one)))
            .filter(|(label, (code, _))| **label != header || !iteration.has_changing_phi(code))
            .map(|(label, _)| *label)
            .collect();
        // The blocks of idle paths from the header, of which one leads back to it.
        let mut path = HashSet::new();
        let mut worklist = vec![header];
        while let Some(label) = worklist.pop() {
            if idle.contains(&label) && path.insert(label) {
                worklist.extend(&body[&label].1);
            }
        }
        let leads_back = path.iter().any(|label| body[label].1.contains(&header));
        let atomics = path.iter().flat_map(|label| body[label].0).filter(|one| iteration.reads_buffer(one));
        atomics.min_by_key(|one| one.place).filter(|_| leads_back)
    }

    /// Returns the local variable that an instruction stores to.
    fn stored_local(self, instruction: &SpirvInstruction) -> Option<u32> {
        match self.module.operation(instruction) {
            SpirvOperation::Store { pointer, .. } => self.local_variable(pointer),
            _ => None,
        }
    }

    /// Returns the variable of a pointer into memory of one invocation.
    fn local_variable(self, pointer: u32) -> Option<u32> {
        let is_local = matches!(self.class_of(pointer)?, StorageClass::Function | StorageClass::Private);
        let mut id = Some(pointer).filter(|_| is_local)?;
        let definition = |id| self.function.code.iter().find(|one| one.result == id);
        while let Some(SpirvOperation::AccessChain { base, .. }) =
            definition(id).map(|one| self.module.operation(one))
        {
            id = base;
        }
        Some(id)
    }

    fn class_of(self, pointer: u32) -> Option<StorageClass> {
        let ty = self.function.types.get(&pointer).or_else(|| self.module.variable_types.get(&pointer))?;
        match self.module.types.get(ty)? {
            SpirvType::Pointer { class, .. } => Some(*class),
            _ => None,
        }
    }
}

/// An iteration of a loop: its results, and the local variables that it stores to.
struct LoopIteration<'m> {
    of: FunctionLoops<'m>,
    results: HashMap<u32, &'m SpirvInstruction>,
    stored: HashSet<u32>,
}

impl LoopIteration<'_> {
    /// Returns true if an instruction leaves memory, and local variables from one iteration to the next, as they were.
    fn is_idle(&self, instruction: &SpirvInstruction) -> bool {
        let module = self.of.module;
        match module.operation(instruction) {
            SpirvOperation::Atomic(access) => self.is_repeated(&access),
            SpirvOperation::Store { pointer, value, .. } => {
                self.of.local_variable(pointer).is_some() && !self.depends_on_iteration(value, false)
            }
            SpirvOperation::Call { .. } => false,
            operation => match operation.memory_effect() {
                MemoryEffect::Barrier { .. } => true,
                _ => !operation.may_change_memory(),
            },
        }
    }

    fn has_changing_phi(&self, header: &[SpirvInstruction]) -> bool {
        let is_changing = |one: &SpirvInstruction| match self.of.module.operation(one) {
            SpirvOperation::Phi { sources } => {
                sources.iter().any(|[value, _]| *value != one.result && self.results.contains_key(value))
            }
            _ => false,
        };
        header.iter().any(is_changing)
    }

    /// Returns true if an atomic only reads until another invocation changes what it reads.
    fn is_repeated(&self, access: &AtomicAccess) -> bool {
        let constant = |id: u32| match self.of.module.constants.get(&id) {
            Some((_, SpirvConstant::Scalar(number))) => Some(*number),
            _ => None,
        };
        match access.kind {
            AtomicKind::Load => true,
            AtomicKind::CompareExchange { comparator, .. } => !self.depends_on_iteration(comparator, true),
            AtomicKind::Exchange { value } => constant(value).is_some(),
            AtomicKind::Update { value, .. } => value.and_then(constant) == Some(0),
            AtomicKind::Store { .. } => false,
        }
    }

    fn reads_buffer(&self, instruction: &SpirvInstruction) -> bool {
        let SpirvOperation::Atomic(access) = self.of.module.operation(instruction) else { return false };
        let class = self.of.class_of(access.pointer);
        class.is_some_and(|class| class != StorageClass::Workgroup) && self.is_repeated(&access)
    }

    /// Returns true if a value depends on a local variable that the iteration stores to, or with `of_memory` on memory
    /// that it reads.
    fn depends_on_iteration(&self, value: u32, of_memory: bool) -> bool {
        let (mut worklist, mut seen) = (vec![value], HashSet::new());
        while let Some(id) = worklist.pop() {
            let Some(instruction) = self.results.get(&id).filter(|_| seen.insert(id)) else { continue };
            match self.of.module.operation(instruction) {
                SpirvOperation::Load { pointer, .. } => match self.of.local_variable(pointer) {
                    Some(variable) if self.stored.contains(&variable) => return true,
                    None if of_memory => return true,
                    _ => {}
                },
                SpirvOperation::Atomic(_) if of_memory => return true,
                _ => {}
            }
            worklist.extend(self.of.module.operands_of(instruction));
        }
        false
    }
}
