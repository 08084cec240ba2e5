//! The memory instructions of a shader, in program order with calls inlined, for the check of machine code.
//!
//! Loops and branches are not followed: an instruction is one step, wherever it is. So orders between an
//! access and those of the next turn of its loop are not checked.

use std::collections::HashMap;

use codegen::disassembly::{CodeOperation, CodePath};
use codegen::order::{MemoryStep, StepKind};
use codegen::{ExpectedAccess, LineSource};
use entry_point::accessed_variable::{accessed_class, variable_label};
use entry_point::order::{access_strength, scope_from_number, semantics_from_number};
use entry_point::{Problem, source_location, unsupported};
use litmus::{Access, ThreadId};
use rspirv::spirv::StorageClass as Class;
use spirv_reader::{
    ImageOperation, MemoryOperands, SpirvConstant, SpirvFunction, SpirvInstruction, SpirvModule,
    SpirvOperation, SpirvType,
};

use super::observed::{block_of, is_needed};

/// Upper bound on nested calls; SPIR-V has no recursion.
const MAX_CALL_DEPTH: usize = 64;
/// Upper bound on the characters of a source line in a name.
const MAX_TEXT: usize = 40;
/// Upper bound on the steps of a kernel.
const MAX_STEPS: usize = 2000;

/// The memory instructions of an entry point.
#[derive(Clone, Debug, Default)]
pub struct ShaderSteps {
    pub steps: Vec<MemoryStep>,
    pub accesses: Vec<ExpectedAccess>,
    /// The name of each step.
    pub names: Vec<String>,
}

/// A source file, whose lines name the steps.
pub struct SourceLines<'a> {
    pub file: &'a str,
    /// The text, if the file is one.
    pub lines: Vec<String>,
}

/// Returns the memory instructions of an entry function.
///
/// # Errors
/// If a scope or semantics is unsupported or no constant.
pub fn collect_steps(
    module: &SpirvModule,
    function: u32,
    source: &SourceLines<'_>,
) -> Result<ShaderSteps, Problem> {
    let mut collector = StepCollector {
        module,
        source,
        places: module.variables.keys().map(|id| (*id, Place { root: *id, path: Vec::new() })).collect(),
        addresses: HashMap::new(),
        storages: module.descriptors().into_iter().collect(),
        found: ShaderSteps::default(),
    };
    collector.visit_function(function, 0)?;
    Ok(collector.found)
}

/// A variable, with the ids that index it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Place {
    root: u32,
    path: Vec<u32>,
}

struct StepCollector<'a> {
    module: &'a SpirvModule,
    source: &'a SourceLines<'a>,
    places: HashMap<u32, Place>,
    /// A number for each place.
    addresses: HashMap<Place, u32>,
    /// The bindings in order.
    storages: Vec<(u32, u32)>,
    found: ShaderSteps,
}

/// The kind of access of an instruction.
#[derive(Clone, Copy)]
enum AccessOrder {
    Plain(MemoryOperands),
    Atomic { scope: u32, semantics: u32 },
}

impl StepCollector<'_> {
    fn visit_function(&mut self, function: u32, depth: usize) -> Result<(), Problem> {
        let module = self.module;
        let body = module.functions.get(&function).filter(|_| depth < MAX_CALL_DEPTH);
        let body = body.ok_or_else(|| unsupported("calls that are nested this deeply"))?;
        for (at, instruction) in body.code.iter().enumerate() {
            match module.operation(instruction) {
                SpirvOperation::Call { function: called, arguments } => {
                    let parameters = module.functions.get(&called).map(|called| called.parameters.clone());
                    for (parameter, argument) in parameters.unwrap_or_default().iter().zip(arguments) {
                        self.extend_place(*parameter, *argument, &[]);
                    }
                    self.visit_function(called, depth + 1)?;
                }
                SpirvOperation::AccessChain { base, indices, .. } => {
                    self.extend_place(instruction.result, base, indices);
                }
                SpirvOperation::Copy { value: base }
                | SpirvOperation::Image(
                    ImageOperation::TexelPointer { image: base, .. }
                    | ImageOperation::ImageOf { sampled: base }
                    | ImageOperation::Combine { image: base, .. },
                ) => {
                    self.extend_place(instruction.result, base, &[]);
                }
                SpirvOperation::Load { pointer, .. }
                    if matches!(module.types.get(&instruction.ty), Some(SpirvType::Handle(_))) =>
                {
                    self.extend_place(instruction.result, pointer, &[]);
                }
                other => self.visit_memory(body, at, other)?,
            }
        }
        Ok(())
    }

    fn extend_place(&mut self, id: u32, base: u32, indices: &[u32]) {
        match self.places.get(&base) {
            Some(place) => {
                let place = Place { root: place.root, path: [&place.path, indices].concat() };
                self.places.insert(id, place);
            }
            None => {
                self.places.remove(&id);
            }
        }
    }

    fn visit_memory(
        &mut self,
        body: &SpirvFunction,
        at: usize,
        operation: SpirvOperation<'_>,
    ) -> Result<(), Problem> {
        use CodeOperation::{Atomic, Load, Store};
        let Some(instruction) = body.code.get(at) else { return Ok(()) };
        let plain = AccessOrder::Plain;
        match operation {
            SpirvOperation::Load { pointer, memory } => {
                self.add_access(body, at, pointer, Load, plain(memory))
            }
            SpirvOperation::Store { pointer, memory, .. } => {
                self.add_access(body, at, pointer, Store, plain(memory))
            }
            SpirvOperation::CopyMemory { target, source, memory: [stored, loaded] } => {
                self.add_access(body, at, source, Load, plain(loaded))?;
                self.add_access(body, at, target, Store, plain(stored))
            }
            SpirvOperation::Image(
                ImageOperation::Read { image, operands, .. }
                | ImageOperation::Fetch { image, operands, .. }
                | ImageOperation::Sample { image, operands, .. },
            ) => self.add_access(body, at, image, Load, plain(operands.memory)),
            SpirvOperation::Image(ImageOperation::Write { image, operands, .. }) => {
                self.add_access(body, at, image, Store, plain(operands.memory))
            }
            SpirvOperation::Atomic(access) => {
                let order = AccessOrder::Atomic { scope: access.scope, semantics: access.semantics };
                let operation = match (access.kind.reads(), access.kind.writes()) {
                    (true, true) => Atomic,
                    (true, false) => Load,
                    (false, _) => Store,
                };
                self.add_access(body, at, access.pointer, operation, order)
            }
            SpirvOperation::MemoryBarrier { scope, semantics } => {
                let (scope, semantics) =
                    (self.scope(scope)?, semantics_from_number(self.number(semantics)?)?);
                self.add_step(instruction, "memory barrier", StepKind::Fence { scope, semantics })
            }
            SpirvOperation::ControlBarrier { scope, semantics, .. } => {
                let semantics = semantics_from_number(self.number(semantics)?)?;
                let scope = self.scope(scope)?;
                let semantics = Some(semantics);
                self.add_step(instruction, "control barrier", StepKind::Barrier { scope, semantics })
            }
            _ => Ok(()),
        }
    }

    fn number(&self, id: u32) -> Result<u64, Problem> {
        match self.module.constants.get(&id) {
            Some((_, SpirvConstant::Scalar(value))) => Ok(*value),
            Some((_, SpirvConstant::Null)) => Ok(0),
            _ => Err(unsupported("scopes and semantics that are not constants")),
        }
    }

    fn scope(&self, id: u32) -> Result<litmus::Scope, Problem> {
        scope_from_number(self.number(id)?, self.module.uses_vulkan_model)
    }

    fn add_step(
        &mut self,
        instruction: &SpirvInstruction,
        words: &str,
        kind: StepKind,
    ) -> Result<(), Problem> {
        if self.found.steps.len() >= MAX_STEPS {
            return Err(Problem::Budget { what: "memory instructions of a shader", bound: MAX_STEPS });
        }
        let (file, line) =
            source_location(self.source.file, self.module, instruction.line, instruction.place);
        // Only the file that was given is read: a module may name any.
        let text = line
            .filter(|_| file == self.source.file)
            .and_then(|line| self.source.lines.get(line as usize - 1));
        let line = line.map_or_else(String::new, |line| format!("{line}: "));
        let text = text.map_or_else(String::new, |text| format!(": {}", shorten(text.trim())));
        self.found.names.push(format!("{line}{words}{text}"));
        let source = LineSource::Instruction(ThreadId(0), self.found.steps.len());
        self.found.steps.push(MemoryStep { source, kind });
        Ok(())
    }

    fn add_access(
        &mut self,
        body: &SpirvFunction,
        at: usize,
        pointer: u32,
        operation: CodeOperation,
        order: AccessOrder,
    ) -> Result<(), Problem> {
        let module = self.module;
        let Some(instruction) = body.code.get(at) else { return Ok(()) };
        let by_address = || match module.types.get(body.types.get(&pointer)?) {
            Some(SpirvType::Pointer { class: Class::PhysicalStorageBuffer, pointee }) => {
                Some(Place { root: *pointee, path: Vec::new() })
            }
            _ => None,
        };
        let Some(place) = self.places.get(&pointer).cloned().or_else(by_address) else { return Ok(()) };
        let Some((class, declared)) = accessed_class(module, place.root) else { return Ok(()) };
        let is_block = declared == Class::Uniform && is_constant_block(module, place.root);
        let is_coherent = is_coherent(module, place.root);
        let is_store = operation == CodeOperation::Store;
        let strength = match order {
            _ if is_block => Access::Private,
            AccessOrder::Plain(operands) => {
                access_strength(operands, class, module, is_coherent, is_store, |id| self.number(id).ok())?
            }
            AccessOrder::Atomic { scope, semantics } => {
                let (scope, semantics) =
                    (self.scope(scope)?, semantics_from_number(self.number(semantics)?)?);
                Access::Atomic { scope, semantics }
            }
        };
        let source = LineSource::Instruction(ThreadId(0), self.found.steps.len());
        let (word, path) = match (operation, declared) {
            (_, Class::Workgroup) => (u32::MAX - 1, CodePath::Workgroup),
            (_, Class::PhysicalStorageBuffer) => (u32::MAX - 2, CodePath::Address),
            (_, Class::UniformConstant) => (self.storage(place.root), CodePath::Image),
            _ => (self.storage(place.root), CodePath::Buffer),
        };
        let verb = match operation {
            CodeOperation::Load => "load of",
            CodeOperation::Store => "store to",
            CodeOperation::Atomic => "update of",
        };
        let words = format!("{verb} {}", variable_label(module, place.root));
        let next = self.addresses.len() as u32;
        let address = *self.addresses.entry(place).or_insert(next);
        let access = ExpectedAccess::of_module(source, word, operation, path, address);
        let is_observed = operation == CodeOperation::Load && is_needed(module, body, at);
        self.found.accesses.push(access.in_block(block_of(body, at), is_observed));
        let (is_read, is_write) = (!is_store, operation != CodeOperation::Load);
        self.add_step(instruction, &words, StepKind::Access { class, strength, is_read, is_write })
    }

    /// Returns the number of a variable's binding, in the order of bindings.
    fn storage(&self, variable: u32) -> u32 {
        let decorations = self.module.decorations_of(variable);
        let at = (decorations.set.unwrap_or(0), decorations.binding.unwrap_or(0));
        self.storages.iter().position(|known| *known == at).map_or(0, |position| position as u32)
    }
}

/// Returns a text without what is beyond the width of a column.
fn shorten(text: &str) -> String {
    match text.char_indices().nth(MAX_TEXT) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or(text)),
        None => text.to_owned(),
    }
}

/// Returns true for a uniform buffer, which no shader writes.
fn is_constant_block(module: &SpirvModule, variable: u32) -> bool {
    let ty = module.variables.get(&variable).map_or(0, |variable| module.element_type(variable.ty));
    module.decorations_of(ty).block
}

/// Returns true if a variable or every member of its block is coherent.
fn is_coherent(module: &SpirvModule, variable: u32) -> bool {
    let ty = module.variables.get(&variable).map_or(variable, |variable| module.element_type(variable.ty));
    let Some(SpirvType::Struct { members }) = module.types.get(&ty) else {
        return module.decorations_of(variable).coherent;
    };
    let is_member_coherent = |member: u32| {
        module.member_decorations.get(&(ty, member)).is_some_and(|decorations| decorations.coherent)
    };
    module.decorations_of(variable).coherent
        || !members.is_empty() && (0..members.len() as u32).all(is_member_coherent)
}
