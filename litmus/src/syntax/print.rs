//! Writes a test in its own dialect, with the columns of its table aligned.

use std::fmt::Write;

use super::hsa;
use super::words::{self, AccessType, word_of};
use crate::condition::{Comparison, Condition, Question, QuestionKind, Term};
use crate::metadata::{Metadata, Reachability};
use crate::outcome::Race;
use crate::system::{InterlockEnd, SystemOperation};
use crate::test::{
    Access, Dialect, InstructionKind, Location, LocationId, LocationInit, Operand, Order, Place, RegisterId,
    RegisterInit, RmwOperation, ScalarType, Scope, Semantics, StorageClass, SyncPoint, Test, Thread,
    ThreadId,
};

/// The text of a test in its own syntax: Khronos' `.test` for a test that came from there, else the native dialect.
///
/// Reading it back with [`parse`](super::parse) gives the same test, for every test that came from `parse`.
pub fn print(test: &Test) -> String {
    if let Some(khronos) = &test.khronos {
        return super::khronos::print(test, khronos);
    }
    let mut out = String::with_capacity(1024);
    let keyword = if test.dialect == Dialect::Hsa { "HSA" } else { "VULKAN" };
    line(&mut out, &format!("{keyword} {}", one_line(&test.name)));
    print_metadata(&mut out, &test.metadata);
    if test.dialect == Dialect::Hsa {
        hsa::print_body(&mut out, test);
    } else {
        print_body(&mut out, test);
    }
    if let Some(question) = &test.question {
        line(&mut out, &question.text(test));
    }
    out
}

/// What stands between the header and the question.
fn print_body(out: &mut String, test: &Test) {
    print_initial_state(out, test);
    if !test.system_sync.is_empty() {
        out.push_str("{\n");
        for pair in &test.system_sync {
            let (from, to) = (sync_point(test, pair.from), sync_point(test, pair.to));
            line(out, &format!("ssw {from} {to};"));
        }
        out.push_str("}\n");
    }
    print_table(out, test);
    if !test.listed.is_empty() {
        let terms: Vec<String> = test.listed.iter().map(|listed| term(test, listed, false)).collect();
        line(out, &format!("locations [{}]", terms.join("; ")));
    }
    if let Some(filter) = &test.filter {
        line(out, &format!("filter ({})", filter.text(test)));
    }
}

impl Question {
    /// The canonical text, such as `exists (P0:r0 == 0 /\ P1:r1 == 1)`.
    pub fn text(&self, test: &Test) -> String {
        let quantifier = match self.kind {
            QuestionKind::Exists => "exists",
            QuestionKind::NotExists => "~exists",
            QuestionKind::Forall => "forall",
            QuestionKind::Final => "final",
        };
        format!("{quantifier} ({})", self.condition.text(test))
    }
}

impl Condition {
    /// The canonical text, such as `P0:r0 == 0 /\ P1:r1 == 1`: with no more parentheses than its structure needs.
    pub fn text(&self, test: &Test) -> String {
        let mut out = String::new();
        self.write(test, 0, &mut out);
        out
    }

    /// Writes the condition where only operators that bind tighter than `level` may stand bare.
    fn write(&self, test: &Test, level: u8, out: &mut String) {
        let own = match self {
            Condition::Or(..) => 1,
            Condition::And(..) => 2,
            Condition::Not(_) => 3,
            Condition::True | Condition::Compare { .. } => 4,
        };
        let parentheses = own <= level;
        if parentheses {
            out.push('(');
        }
        match self {
            Condition::True => out.push_str("true"),
            Condition::Compare { left, comparison, right } => {
                out.push_str(&term(test, left, false));
                out.push_str(match comparison {
                    Comparison::Equal => " == ",
                    Comparison::NotEqual => " != ",
                    Comparison::Less => " < ",
                    Comparison::LessOrEqual => " <= ",
                    Comparison::Greater => " > ",
                    Comparison::GreaterOrEqual => " >= ",
                });
                out.push_str(&term(test, right, true));
            }
            // Chains lean to the left, so that a right operand of the same kind needs parentheses.
            Condition::And(left, right) => {
                left.write(test, own - 1, out);
                out.push_str(" /\\ ");
                right.write(test, own, out);
            }
            Condition::Or(left, right) => {
                left.write(test, own - 1, out);
                out.push_str(" \\/ ");
                right.write(test, own, out);
            }
            Condition::Not(inner) => {
                out.push('~');
                // `~ exists` is a quantifier; `~(…)` is how a negation is read best.
                match **inner {
                    Condition::Not(_) => inner.write(test, own - 1, out),
                    _ => {
                        out.push('(');
                        inner.write(test, 0, out);
                        out.push(')');
                    }
                }
            }
        }
        if parentheses {
            out.push(')');
        }
    }
}

/// A side of a comparison. On the right a bare name is an address, so a value needs an index there.
fn term(test: &Test, term: &Term, right: bool) -> String {
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

pub(super) fn location_name(test: &Test, id: LocationId) -> &str {
    &test.location(id).name
}

pub(super) fn register_name(thread: &Thread, id: RegisterId) -> &str {
    thread.registers.get(usize::from(id.0)).map_or("?", |register| &register.name)
}

pub(super) fn line(out: &mut String, text: &str) {
    out.push_str(text);
    out.push('\n');
}

/// Text that cannot end the line, the header, or begin a comment.
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
        line(out, &format!("expect: {} {reachability}{race}", one_line(&expectation.model)));
    }
    for termination in &metadata.terminations {
        let fairness = if termination.strong { "strong" } else { "weak" };
        let models =
            if termination.models.is_empty() { "none".to_owned() } else { termination.models.join(" ") };
        line(out, &format!("terminates: {fairness} {}", one_line(&models)));
    }
    for (key, words) in [("clause", &metadata.clauses), ("needs", &metadata.needs)] {
        if !words.is_empty() {
            line(out, &format!("{key}: {}", one_line(&words.join(" "))));
        }
    }
    if let Some(origin) = &metadata.origin {
        line(out, &format!("origin: {}", one_line(origin)));
    }
    for why in &metadata.why {
        line(out, &format!("why: {}", one_line(why)));
    }
    for comment in &metadata.comments {
        line(out, &one_line(comment));
    }
}

fn print_initial_state(out: &mut String, test: &Test) {
    out.push_str("{\n");
    for location in &test.locations {
        if location.declared || location.init != LocationInit::Constant(0) {
            line(out, &declaration(test, location));
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
            line(out, &format!("P{}:{} = {value};", thread.number, register.name));
        }
    }
    out.push_str("}\n");
}

fn declaration(test: &Test, location: &Location) -> String {
    let mut text = String::new();
    if let Some(reference) = location.reference {
        text.push_str(reference.keyword());
        text.push(' ');
    }
    // An alias without a type has that of its storage.
    let type_of = |location: &Location| {
        let components = location.components;
        location.scalar.map(|scalar| AccessType { scalar, components })
    };
    let implied = match location.init {
        LocationInit::AliasOf(target) => type_of(test.location(target)),
        _ => None,
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
    }
    text
}

fn sync_point(test: &Test, point: SyncPoint) -> String {
    let number = test.thread(point.thread).number;
    match point.instruction {
        Some(index) => format!("P{number}.{index}"),
        None => number.to_string(),
    }
}

fn print_table(out: &mut String, test: &Test) {
    let mut columns: Vec<Vec<String>> = Vec::with_capacity(test.threads.len());
    for (index, thread) in test.threads.iter().enumerate() {
        let mut cells = Vec::with_capacity(thread.instructions.len() + 1);
        cells.push(match thread.place {
            Place::Host => format!("P{}@host", thread.number),
            Place::Device(place) => format!(
                "P{}@sg {}, wg {}, qf {}",
                thread.number, place.subgroup, place.workgroup, place.queue_family
            ),
        });
        let thread_id = ThreadId(index as u16);
        cells.extend(thread.instructions.iter().map(|instruction| instruction.kind.text(test, thread_id)));
        columns.push(cells);
    }
    aligned_rows(out, &columns);
}

/// Writes the rows of a table; each column begins with its thread.
pub(super) fn aligned_rows(out: &mut String, columns: &[Vec<String>]) {
    // A table has at least one row besides that of the threads, even where no thread does anything.
    let rows = columns.iter().map(Vec::len).max().unwrap_or(0).max(2);
    let widths: Vec<usize> =
        columns.iter().map(|cells| cells.iter().map(String::len).max().unwrap_or(0)).collect();
    for row in 0..rows {
        for (index, (cells, width)) in columns.iter().zip(&widths).enumerate() {
            let cell = cells.get(row).map_or("", String::as_str);
            let separator = if index == 0 { " " } else { " | " };
            let written = write!(out, "{separator}{cell:width$}");
            debug_assert!(written.is_ok(), "writing to a string cannot fail");
        }
        out.push_str(" ;\n");
    }
}

impl InstructionKind {
    /// The text of an instruction of `thread`, such as `ld.atom.acq.dv.sc0.semsc0 r0, x`.
    pub fn text(&self, test: &Test, thread: ThreadId) -> String {
        if test.dialect == Dialect::Hsa {
            return hsa::instruction_text(self, test, thread);
        }
        let names = test.thread(thread);
        let register = |id: RegisterId| register_name(names, id);
        let value = |operand: &Operand| match operand {
            Operand::Constant(constant) => constant.to_string(),
            Operand::Register(id) => register(*id).to_owned(),
        };
        let label = |id: &crate::test::LabelId| {
            names.labels.get(usize::from(id.0)).map_or("?".to_owned(), |label| label.name.clone())
        };
        let memory = |id: LocationId, offset: u32| match offset {
            0 => location_name(test, id).to_owned(),
            offset => format!("{}+{offset}", location_name(test, id)),
        };
        match self {
            InstructionKind::Cooperative(access) => {
                let text = access.text(test, thread);
                let (word, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
                format!("{word}.coop{rest}")
            }
            InstructionKind::Vector(components) => {
                let Some(first) = components.first() else { return String::new() };
                let count = components.len() as u8;
                // A vector type stands only where it is not that of the location.
                let head = |id: LocationId, offset: u32, scalar: &Option<ScalarType>| {
                    let ty = AccessType { scalar: scalar.unwrap_or_default(), components: count };
                    let location = test.location(id);
                    let own =
                        offset == 0 && location.components == count && location.scalar_type() == ty.scalar;
                    let suffix = if own { String::new() } else { format!(".{}", ty.keyword()) };
                    (suffix, memory(id, offset))
                };
                match first {
                    InstructionKind::Load { location, offset, scalar, class, access, .. } => {
                        let (suffix, place) = head(*location, *offset, scalar);
                        let access = access_modifiers("vis", *access, *class);
                        let registers = components.iter().flat_map(InstructionKind::destinations);
                        let registers = in_braces(registers.map(|id| register(id).to_owned()));
                        format!("ld{access}{suffix} {registers}, {place}")
                    }
                    InstructionKind::Store { location, offset, scalar, class, access, .. } => {
                        let (suffix, place) = head(*location, *offset, scalar);
                        let access = access_modifiers("av", *access, *class);
                        let values = components.iter().filter_map(|component| match component {
                            InstructionKind::Store { value: stored, .. } => Some(value(stored)),
                            _ => None,
                        });
                        format!("st{access}{suffix} {place}, {}", in_braces(values))
                    }
                    // Only loads and stores are components.
                    other => other.text(test, thread),
                }
            }
            InstructionKind::Load { destination, location, offset, scalar, class, access } => {
                let access = access_modifiers("vis", *access, *class);
                let scalar = scalar_modifier(*scalar);
                format!("ld{access}{scalar} {}, {}", register(*destination), memory(*location, *offset))
            }
            InstructionKind::Store { location, offset, scalar, value: stored, class, access } => {
                let access = access_modifiers("av", *access, *class);
                let scalar = scalar_modifier(*scalar);
                format!("st{access}{scalar} {}, {}", memory(*location, *offset), value(stored))
            }
            InstructionKind::Rmw {
                destination,
                location,
                offset,
                scalar,
                operation,
                class,
                scope,
                semantics,
            } => {
                let mut text = String::from("rmw");
                text.push_str(&atomic_modifiers(*scope, *class, *semantics));
                let operands = match operation {
                    RmwOperation::Exchange(operand) => value(operand),
                    RmwOperation::Fetch(operation, operand) => {
                        text.push('.');
                        text.push_str(operation.keyword());
                        value(operand)
                    }
                    RmwOperation::CompareExchange { compare, value: new, unequal } => {
                        text.push_str(".cas");
                        if unequal.order != Order::Relaxed {
                            text.push_str(".uneq_acq");
                            if *unequal != semantics.unequal() {
                                text.push_str(&classes(*unequal));
                            }
                        }
                        format!("{}, {}", value(compare), value(new))
                    }
                };
                text.push_str(&scalar_modifier(*scalar));
                format!("{text} {}, {}, {operands}", register(*destination), memory(*location, *offset))
            }
            InstructionKind::Fence { scope, semantics } => {
                format!("membar{}.{}{}", order(*semantics), scope.keyword(), classes(*semantics))
            }
            InstructionKind::ControlBarrier(barrier) => {
                let mut text = String::from("cbar");
                if barrier.execution_scope != Scope::Workgroup {
                    text.push('.');
                    text.push_str(word_of(words::EXECUTION_SCOPES, barrier.execution_scope));
                }
                let semantics = barrier.semantics.unwrap_or(Semantics::RELAXED);
                text.push_str(&order(semantics));
                text.push('.');
                text.push_str(barrier.memory_scope.keyword());
                text.push_str(&classes(semantics));
                text.push(' ');
                text.push_str(&barrier.id);
                if let Some(resource) = &barrier.resource {
                    text.push_str(", ");
                    text.push_str(resource);
                    if let Some(quorum) = barrier.quorum {
                        text.push_str(&format!(", {quorum}"));
                    }
                }
                text
            }
            InstructionKind::AvailableToDevice => "avdevice".to_owned(),
            InstructionKind::VisibleFromDevice => "visdevice".to_owned(),
            InstructionKind::System(operation) => {
                let word = operation.keyword();
                let names = |list: &[LocationId]| {
                    list.iter().map(|id| location_name(test, *id).to_owned()).collect::<Vec<_>>().join(", ")
                };
                match operation {
                    SystemOperation::Available(mask) | SystemOperation::Visible(mask) => {
                        let accesses: String = mask.words().map(|access| format!(".{access}")).collect();
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
                format!("interlock.{end} {}", interlock.section)
            }
            InstructionKind::Arithmetic { destination, operation, left, right } => format!(
                "{} {}, {}, {}",
                operation.keyword(),
                register(*destination),
                value(left),
                value(right)
            ),
            InstructionKind::Label(id) => format!("{}:", label(id)),
            InstructionKind::Goto(id) => format!("goto {}", label(id)),
            InstructionKind::Branch { relation, left, right, target } => {
                format!("{} {}, {}, {}", relation.keyword(), value(left), value(right), label(target))
            }
            // The native dialect has no words for these.
            InstructionKind::Await { .. }
            | InstructionKind::Update { .. }
            | InstructionKind::Addressed { .. }
            | InstructionKind::Move { .. }
            | InstructionKind::Compare { .. }
            | InstructionKind::BranchIf { .. } => hsa::instruction_text(self, test, thread),
        }
    }
}

fn thread_list(test: &Test, threads: &[ThreadId]) -> String {
    threads.iter().map(|id| format!("P{}", test.thread(*id).number)).collect::<Vec<_>>().join(", ")
}

fn in_braces(items: impl Iterator<Item = String>) -> String {
    format!("{{{}}}", items.collect::<Vec<_>>().join(", "))
}

fn scalar_modifier(scalar: Option<ScalarType>) -> String {
    scalar.map_or(String::new(), |ty| format!(".{}", ty.keyword()))
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
    format!(".atom{}.{}.{}{}", order(semantics), scope.keyword(), class.keyword(), classes(semantics))
}

fn order(semantics: Semantics) -> String {
    semantics.order.keyword().map_or(String::new(), |word| format!(".{word}"))
}

fn classes(semantics: Semantics) -> String {
    let mut text = String::new();
    for class in semantics.classes.iter() {
        text.push('.');
        text.push_str(word_of(words::SEMANTICS_CLASSES, class));
    }
    if semantics.make_available {
        text.push_str(".semav");
    }
    if semantics.make_visible {
        text.push_str(".semvis");
    }
    text
}
