//! Prints a test in its own dialect, with aligned columns.

#![deny(clippy::wildcard_enum_match_arm)]

use super::layout::{location_name, push_aligned_rows, push_line, register_name};
use super::words::{self, AccessType, Keyword, find_word, order_keyword};
use super::{hsa, subgroup};
use crate::condition::{Condition, Question, QuestionKind, Term};
use crate::metadata::{Metadata, Reachability};
use crate::outcome::Race;
use crate::system::{InterlockEnd, InterlockOrder, SystemOperation};
use crate::test::{
    Access, AccessKind, BarrierSemantics, Components, Compute, Dialect, Flow, InstructionKind, Location,
    LocationId, LocationInit, MemoryAccess, MemoryPlace, Operand, Order, Performer, Placement, Reference,
    RegisterId, RegisterInit, RmwOperation, Scope, Semantics, StorageClass, SyncPoint, Test, ThreadId,
    ThreadPlace,
};

/// Returns the text of a test in its own syntax: Khronos' `.test` for a test from there, else the native
/// dialect.
///
/// For every test from [`parse`](super::parse), parsing the result gives the same test.
pub fn print(test: &Test) -> String {
    if let Some(khronos) = &test.khronos {
        return super::khronos::print_test(test, khronos);
    }
    let mut out = String::with_capacity(1024);
    let keyword = if test.dialect == Dialect::Hsa { "HSA" } else { "VULKAN" };
    push_line(&mut out, &format!("{keyword} {}", one_line(&test.name)));
    print_metadata(&mut out, &test.metadata);
    print_body(&mut out, test);
    if let Some(question) = &test.question {
        push_line(&mut out, &question.to_text(test));
    }
    out
}

/// Prints the part between the header and the question.
fn print_body(out: &mut String, test: &Test) {
    print_initial_state(out, test);
    if test.attached_sync().next().is_some() {
        out.push_str("{\n");
        for pair in test.attached_sync() {
            let (from, to) = (sync_point_text(test, pair.from), sync_point_text(test, pair.to));
            let keyword = if test.dialect == Dialect::Hsa { "pkt" } else { "ssw" };
            push_line(out, &format!("{keyword} {from} {to};"));
        }
        out.push_str("}\n");
    }
    print_table(out, test);
    if !test.listed_terms.is_empty() {
        let terms: Vec<String> =
            test.listed_terms.iter().map(|listed| term_text(test, listed, false)).collect();
        push_line(out, &format!("locations [{}]", terms.join("; ")));
    }
    if let Some(filter) = &test.filter {
        push_line(out, &format!("filter ({})", filter.to_text(test)));
    }
}

impl Question {
    /// Returns the canonical text, such as `exists (P0:r0 == 0 /\ P1:r1 == 1)`.
    pub fn to_text(&self, test: &Test) -> String {
        let quantifier = match self.kind {
            QuestionKind::Exists => "exists",
            QuestionKind::NotExists => "~exists",
            QuestionKind::Forall => "forall",
            QuestionKind::Final => "final",
        };
        format!("{quantifier} ({})", self.condition.to_text(test))
    }
}

impl Condition {
    /// Returns the canonical text with minimal parentheses, such as `P0:r0 == 0 /\ P1:r1 == 1`.
    pub fn to_text(&self, test: &Test) -> String {
        let mut out = String::new();
        self.write_nested(test, 0, &mut out);
        out
    }

    /// Writes the condition; only operators that bind tighter than `level` go without parentheses.
    fn write_nested(&self, test: &Test, level: u8, out: &mut String) {
        let precedence = match self {
            Condition::Or(..) => 1,
            Condition::And(..) => 2,
            Condition::Not(_) => 3,
            Condition::True | Condition::Compare { .. } => 4,
        };
        let parentheses = precedence <= level;
        if parentheses {
            out.push('(');
        }
        match self {
            Condition::True => out.push_str("true"),
            Condition::Compare { left, comparison, right } => {
                out.push_str(&term_text(test, left, false));
                out.push_str(&format!(" {} ", comparison.sign()));
                out.push_str(&term_text(test, right, true));
            }
            // Operators are left-associative, so a right operand of the same kind needs parentheses.
            Condition::And(left, right) => {
                left.write_nested(test, precedence - 1, out);
                out.push_str(" /\\ ");
                right.write_nested(test, precedence, out);
            }
            Condition::Or(left, right) => {
                left.write_nested(test, precedence - 1, out);
                out.push_str(" \\/ ");
                right.write_nested(test, precedence, out);
            }
            Condition::Not(inner) => {
                out.push('~');
                // The operand of `~` gets parentheses, except another negation.
                if let Condition::Not(_) = **inner {
                    inner.write_nested(test, precedence - 1, out);
                } else {
                    out.push('(');
                    inner.write_nested(test, 0, out);
                    out.push(')');
                }
            }
        }
        if parentheses {
            out.push(')');
        }
    }
}

/// Returns one side of a comparison. On the right a bare name is an address, so a value needs an index there.
fn term_text(test: &Test, term: &Term, right: bool) -> String {
    match term {
        Term::Register(thread, register) => {
            format!("P{}:{}", test.thread(*thread).number, register_name(test.thread(*thread), *register))
        }
        Term::Location(location, component)
            if test.location(*location).is_vector() || right && test.dialect != Dialect::Hsa =>
        {
            format!("{}[{component}]", location_name(test, *location))
        }
        Term::Address(location) if !right => format!("&{}", location_name(test, *location)),
        Term::Location(location, _) | Term::Address(location) => location_name(test, *location).to_owned(),
        Term::Constant(constant) => constant.to_string(),
    }
}

/// Returns text that cannot end the line or the header, or begin a comment.
fn one_line(text: &str) -> String {
    text.replace('\n', " ").replace('{', "(").replace("(*", "( *")
}

fn print_metadata(out: &mut String, metadata: &Metadata) {
    for expectation in &metadata.expectations {
        let reachability = match expectation.reachability {
            Reachability::Allowed => "allowed",
            Reachability::Forbidden => "forbidden",
        };
        let race = match expectation.race {
            Some(Race::Free) => " free",
            Some(Race::Racy) => " racy",
            Some(Race::Unknown) | None => "",
        };
        let read = if expectation.uninitialised { " uninitialised" } else { "" };
        push_line(out, &format!("expect: {} {reachability}{race}{read}", one_line(&expectation.model)));
    }
    for termination in &metadata.terminations {
        let fairness = if termination.strong { "strong" } else { "weak" };
        let models =
            if termination.models.is_empty() { "none".to_owned() } else { termination.models.join(" ") };
        push_line(out, &format!("terminates: {fairness} {}", one_line(&models)));
    }
    for (key, words) in [("clause", &metadata.clauses), ("needs", &metadata.needs)] {
        if !words.is_empty() {
            push_line(out, &format!("{key}: {}", one_line(&words.join(" "))));
        }
    }
    if metadata.maximal_reconvergence {
        push_line(out, "reconvergence: maximal");
    }
    if let Some(origin) = &metadata.origin {
        push_line(out, &format!("origin: {}", one_line(origin)));
    }
    for why in &metadata.why {
        push_line(out, &format!("why: {}", one_line(why)));
    }
    for comment in &metadata.comments {
        push_line(out, &one_line(comment));
    }
}

fn print_initial_state(out: &mut String, test: &Test) {
    out.push_str("{\n");
    for location in &test.locations {
        if location.declared || location.init != LocationInit::Constant(0) {
            push_line(out, &declaration_text(test, location));
        }
    }
    for thread in &test.threads {
        for register in &thread.registers {
            let value = match register.init {
                RegisterInit::Constant(0) if !register.declared => continue,
                RegisterInit::Constant(constant) => constant.to_string(),
                RegisterInit::ValueOf(location) => location_name(test, location).to_owned(),
                RegisterInit::AddressOf(location) => format!("&{}", location_name(test, location)),
            };
            push_line(out, &format!("P{}:{} = {value};", thread.number, register.name));
        }
    }
    out.push_str("}\n");
}

fn declaration_text(test: &Test, location: &Location) -> String {
    let mut text = String::new();
    match location.reference {
        // The default of the dialect, and its word for workgroup memory.
        Some(Reference::Buffer) if test.dialect == Dialect::Hsa => {}
        Some(Reference::Workgroup) if test.dialect == Dialect::Hsa => text.push_str("group "),
        reference => text.extend(reference.map(|reference| format!("{} ", reference.keyword()))),
    }
    // An alias without a type has its storage's type.
    let type_of = |location: &Location| {
        let components = location.components;
        location.scalar.map(|scalar| AccessType { scalar, components })
    };
    let implied = match location.init {
        LocationInit::AliasOf(target) => type_of(test.location(target)),
        LocationInit::Constant(_)
        | LocationInit::Components(_)
        | LocationInit::CopyOf(_)
        | LocationInit::AddressOf(_)
        | LocationInit::Undefined => None,
    };
    if let Some(ty) = type_of(location)
        && Some(ty) != implied
    {
        text.push_str(&ty.keyword());
        text.push(' ');
    }
    text.push_str(&location.name);
    match (location.host, location.noncoherent) {
        (true, true) => text.push_str(" [host, noncoherent]"),
        (true, false) => text.push_str(" [host]"),
        (false, true) => text.push_str(" [noncoherent]"),
        (false, false) => {}
    }
    match location.init {
        LocationInit::Constant(constant) => text.push_str(&format!(" = {constant};")),
        LocationInit::Components(constants) => {
            let used = constants.iter().take(usize::from(location.components));
            text.push_str(&format!(" = {};", in_braces(used.map(i64::to_string))));
        }
        LocationInit::CopyOf(other) => text.push_str(&format!(" = {};", location_name(test, other))),
        LocationInit::AddressOf(other) => text.push_str(&format!(" = &{};", location_name(test, other))),
        LocationInit::AliasOf(target) => text.push_str(&format!(" aliases {};", location_name(test, target))),
        LocationInit::Undefined => text.push_str(" = ?;"),
    }
    text
}

fn sync_point_text(test: &Test, point: SyncPoint) -> String {
    let number = test.thread(point.thread).number;
    match point.instruction {
        Some(index) => format!("P{number}.{index}"),
        None if test.dialect == Dialect::Hsa => format!("P{number}"),
        None => number.to_string(),
    }
}

fn print_table(out: &mut String, test: &Test) {
    let mut columns: Vec<Vec<String>> = Vec::with_capacity(test.threads.len());
    for (index, thread) in test.threads.iter().enumerate() {
        let mut cells = Vec::with_capacity(thread.instructions.len() + 1);
        cells.push(match thread.place {
            ThreadPlace::Host => format!("P{}@host", thread.number),
            ThreadPlace::Device(Placement { subgroup, workgroup, queue_family, .. })
                if test.dialect == Dialect::Hsa =>
            {
                format!("P{}@wave {subgroup}, wg {workgroup}, agent {queue_family}", thread.number)
            }
            ThreadPlace::Device(place) => {
                let queue = if place.queue == 0 { String::new() } else { format!(", q {}", place.queue) };
                let Placement { subgroup, workgroup, queue_family, .. } = place;
                format!("P{}@sg {subgroup}, wg {workgroup}, qf {queue_family}{queue}", thread.number)
            }
        });
        let thread_id = ThreadId(index as u16);
        cells.extend(thread.instructions.iter().map(|instruction| instruction.kind.to_text(test, thread_id)));
        columns.push(cells);
    }
    push_aligned_rows(out, &columns);
}

impl InstructionKind {
    /// Returns the text of an instruction of `thread`, such as `ld.atom.acq.dv.sc0.semsc0 r0, x`.
    pub fn to_text(&self, test: &Test, thread: ThreadId) -> String {
        // Instructions that a dialect cannot express are printed in the other one.
        if test.dialect == Dialect::Hsa
            && let Some(text) = hsa::instruction_text(self, test, thread)
        {
            return text;
        }
        let foreign = || hsa::instruction_text(self, test, thread).unwrap_or_default();
        let names = test.thread(thread);
        let register = |id: RegisterId| register_name(names, id);
        let value = |operand: &Operand| match operand {
            Operand::Constant(constant) => constant.to_string(),
            Operand::Register(id) => register(*id).to_owned(),
        };
        let label = |id: &crate::test::LabelId| {
            names.labels.get(usize::from(id.0)).map_or("?".to_owned(), |label| label.name.clone())
        };
        match self {
            InstructionKind::Access(access) if access.place.address.is_some() => foreign(),
            InstructionKind::Access(access) => {
                let place = match access.place.offset {
                    0 => location_name(test, access.place.location).to_owned(),
                    offset => format!("{}+{offset}", location_name(test, access.place.location)),
                };
                let coop = match access.performer {
                    Performer::Cooperative => ".coop",
                    Performer::Invocation => "",
                };
                let ty = access_type_suffix(test, access);
                let modifiers = |operation| access_modifiers(operation, access.strength, access.place.class);
                match &access.kind {
                    AccessKind::Load(destinations) => {
                        let registers = component_list(destinations, |id| register(id).to_owned());
                        format!("ld{coop}{}{ty} {registers}, {place}", modifiers("vis"))
                    }
                    AccessKind::Store(values) => {
                        let values = component_list(values, |stored| value(&stored));
                        format!("st{coop}{}{ty} {place}, {values}", modifiers("av"))
                    }
                    AccessKind::Rmw { destination: Some(destination), operation } => {
                        let (word, operands) = match operation {
                            RmwOperation::Exchange(operand) => (String::new(), value(operand)),
                            RmwOperation::Fetch(operation, operand) => {
                                (format!(".{}", operation.keyword()), value(operand))
                            }
                            RmwOperation::CompareExchange { compare, value: new, unequal } => {
                                let mut word = String::from(".cas");
                                if unequal.order != Order::Relaxed {
                                    word.push_str(".uneq_acq");
                                    if *unequal != access.semantics().to_unequal_acquire() {
                                        word.push_str(&class_suffixes(*unequal));
                                    }
                                }
                                (word, format!("{}, {}", value(compare), value(new)))
                            }
                        };
                        let head = format!("rmw{}{word}{ty}", modifiers("av"));
                        format!("{head} {}, {place}, {operands}", register(*destination))
                    }
                    AccessKind::Rmw { destination: None, .. } | AccessKind::Await { .. } => foreign(),
                }
            }
            InstructionKind::Fence { scope, semantics } => {
                format!(
                    "membar{}.{}{}",
                    order_suffix(*semantics),
                    scope.keyword(),
                    class_suffixes(*semantics)
                )
            }
            InstructionKind::SplitBarrier(barrier) => {
                let head = format!("cbar.{}", barrier.half.keyword());
                barrier_text(
                    head,
                    barrier.execution_scope,
                    barrier.memory_scope,
                    barrier.semantics,
                    &barrier.id,
                )
            }
            InstructionKind::ControlBarrier(barrier) => {
                let (execution, memory) = (barrier.execution_scope, barrier.memory_scope);
                let mut text =
                    barrier_text("cbar".to_owned(), execution, memory, barrier.semantics, &barrier.id);
                if let Some(resource) = &barrier.resource {
                    text.push_str(", ");
                    text.push_str(resource);
                    if let Some(quorum) = barrier.quorum {
                        text.push_str(&format!(", {quorum}"));
                    }
                }
                text
            }
            InstructionKind::Subgroup(operation) => {
                let operand = operation.value.as_ref().map(&value);
                subgroup::operation_text(operation, operation.destination.map(&register), operand.as_deref())
            }
            InstructionKind::System(operation) => {
                let word = operation.keyword();
                let names = |list: &[LocationId]| {
                    list.iter().map(|id| location_name(test, *id).to_owned()).collect::<Vec<_>>().join(", ")
                };
                match operation {
                    SystemOperation::AvailableToDevice | SystemOperation::VisibleFromDevice => {
                        word.to_owned()
                    }
                    SystemOperation::Available(mask) | SystemOperation::Visible(mask) => {
                        let accesses: String = mask.names().map(|access| format!(".{access}")).collect();
                        format!("{word}{}", if accesses.is_empty() { ".none" } else { accesses.as_str() })
                    }
                    SystemOperation::Flush(ranges) | SystemOperation::Invalidate(ranges) => {
                        format!("{word} {}", names(ranges)).trim_end().to_owned()
                    }
                    SystemOperation::Submit(threads) | SystemOperation::Wait(threads) => {
                        format!("{word} {}", thread_list(test, threads))
                    }
                }
            }
            InstructionKind::ShaderCall(threads) => format!("call {}", thread_list(test, threads)),
            InstructionKind::Interlock(interlock) => {
                let end = match interlock.end {
                    InterlockEnd::Begin => "begin",
                    InterlockEnd::End => "end",
                };
                let order = match interlock.order {
                    InterlockOrder::Ordered => "",
                    InterlockOrder::Unordered => ".unordered",
                };
                format!("interlock.{end}{order} {}", interlock.section)
            }
            InstructionKind::Compute(Compute::Arithmetic { destination, operation, left, right }) => format!(
                "{} {}, {}, {}",
                operation.keyword(),
                register(*destination),
                value(left),
                value(right)
            ),
            InstructionKind::Flow(Flow::Label(id)) => format!("{}:", label(id)),
            InstructionKind::Flow(Flow::Goto(id)) => format!("goto {}", label(id)),
            InstructionKind::Flow(Flow::Branch { relation, left, right, target }) => {
                format!("{} {}, {}, {}", relation.keyword(), value(left), value(right), label(target))
            }
            InstructionKind::Compute(Compute::Move { .. } | Compute::Compare { .. })
            | InstructionKind::Flow(Flow::BranchIf { .. }) => foreign(),
        }
    }
}

/// Returns a control barrier or a split half: keyword, scopes, semantics and instance.
fn barrier_text(
    mut text: String,
    execution: Scope,
    memory: Scope,
    semantics: BarrierSemantics,
    instance: &str,
) -> String {
    if execution != Scope::Workgroup {
        text.push('.');
        text.push_str(find_word(words::EXECUTION_SCOPES, execution));
    }
    let semantics = semantics.unwrap_or(Semantics::RELAXED);
    text.push_str(&order_suffix(semantics));
    text.push('.');
    text.push_str(memory.keyword());
    text.push_str(&class_suffixes(semantics));
    text.push(' ');
    text.push_str(instance);
    text
}

/// Returns the type of an access if it differs from the location's; a vector type includes the components.
fn access_type_suffix(test: &Test, access: &MemoryAccess) -> String {
    let MemoryPlace { location, offset, scalar, .. } = access.place;
    let location = test.location(location);
    let ty = AccessType { scalar: scalar.unwrap_or_default(), components: access.components() };
    match scalar {
        Some(_) if access.is_vector() => {
            let location_type =
                AccessType { scalar: location.scalar_type(), components: location.components };
            if offset == 0 && location_type == ty { String::new() } else { format!(".{}", ty.keyword()) }
        }
        Some(_) => format!(".{}", ty.keyword()),
        None => String::new(),
    }
}

/// Returns a single item, or several in braces.
fn component_list<T: Copy>(lanes: &Components<T>, text: impl Fn(T) -> String) -> String {
    match lanes.count() {
        1 => text(lanes.first()),
        _ => in_braces(lanes.iter().map(text)),
    }
}

fn thread_list(test: &Test, threads: &[ThreadId]) -> String {
    threads.iter().map(|id| format!("P{}", test.thread(*id).number)).collect::<Vec<_>>().join(", ")
}

fn in_braces(items: impl Iterator<Item = String>) -> String {
    format!("{{{}}}", items.collect::<Vec<_>>().join(", "))
}

fn access_modifiers(operation: &str, access: Access, class: StorageClass) -> String {
    let class_word = class.keyword();
    match access {
        Access::Private => format!(".{class_word}"),
        Access::NonPrivate => format!(".nonpriv.{class_word}"),
        Access::Coherent { scope } => format!(".{operation}.{}.{class_word}", scope.keyword()),
        Access::Atomic { scope, semantics } => atomic_modifiers(scope, class, semantics),
    }
}

fn atomic_modifiers(scope: Scope, class: StorageClass, semantics: Semantics) -> String {
    format!(
        ".atom{}.{}.{}{}",
        order_suffix(semantics),
        scope.keyword(),
        class.keyword(),
        class_suffixes(semantics)
    )
}

fn order_suffix(semantics: Semantics) -> String {
    if semantics.sequential {
        return format!(".{}", words::SEQUENTIAL);
    }
    order_keyword(semantics.order).map_or(String::new(), |word| format!(".{word}"))
}

fn class_suffixes(semantics: Semantics) -> String {
    let mut text = String::new();
    for class in semantics.classes.iter() {
        text.push('.');
        text.push_str(find_word(words::SEMANTICS_CLASSES, class));
    }
    for class in semantics.ignored.iter() {
        text.push('.');
        text.push_str(find_word(words::IGNORED_CLASSES, class));
    }
    if semantics.make_available {
        text.push_str(".semav");
    }
    if semantics.make_visible {
        text.push_str(".semvis");
    }
    text
}
