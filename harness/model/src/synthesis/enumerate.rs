//! Enumerates all small programs over an instruction vocabulary, once up to renaming.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use litmus::{
    Access, ArithmeticOperation, ControlBarrier, InstructionKind, LocationId, MemoryPlace, Operand, Order,
    Placement, RmwOperation, Scope, Semantics, Span, StorageClass, StorageClassSet, SyncPoint,
    SystemOperation, SystemSync, Term, Test, ThreadId,
};

use super::draft::TestBuilder;
use super::shape::placements;
use crate::Model;
use crate::cat::ast::{CatExpression, ExpressionKind, StatementKind};
use crate::mutation::subexpressions_mut;

/// Bound on the locations of one program.
const MAX_LOCATIONS: usize = 2;
/// Bound on the threads of one program.
const MAX_SMALL_THREADS: usize = 4;
/// Bound on the threads if only a part of the vocabulary is used. The shapes cover larger tests.
const MAX_LARGE_THREADS: usize = 2;
/// Programs up to this size use every instruction of the vocabulary, larger ones only the common ones.
const MAX_FULL_VOCABULARY_SIZE: usize = 3;
/// Size of the largest enumerated programs; larger ones are too many.
pub const MAX_PROGRAM_SIZE: usize = 4;

/// An instruction without its location and values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SynthesizedInstruction {
    Load(Access),
    Store(Access),
    Rmw(Scope, Semantics),
    Fence(Scope, Semantics),
    ControlBarrier(Option<Semantics>),
    AvailableToDevice,
    VisibleFromDevice,
}

impl SynthesizedInstruction {
    fn is_access(self) -> bool {
        matches!(
            self,
            SynthesizedInstruction::Load(_)
                | SynthesizedInstruction::Store(_)
                | SynthesizedInstruction::Rmw(..)
        )
    }

    fn is_write(self) -> bool {
        matches!(self, SynthesizedInstruction::Store(_) | SynthesizedInstruction::Rmw(..))
    }
}

/// Instruction forms that some of the models can distinguish.
#[derive(Clone, Debug)]
pub struct FormVocabulary {
    all_forms: Vec<SynthesizedInstruction>,
    common_forms: Vec<SynthesizedInstruction>,
    has_scopes: bool,
    has_system_sync: bool,
}

/// Returns the names that a model's text uses.
fn used_names(model: &Model) -> BTreeSet<String> {
    fn collect(mut expression: CatExpression, names: &mut BTreeSet<String>) {
        match &expression.kind {
            ExpressionKind::Name(name) => {
                names.insert(name.clone());
            }
            ExpressionKind::Call(name, _) => {
                names.insert(name.text.clone());
            }
            _ => {}
        }
        subexpressions_mut(&mut expression.kind).into_iter().for_each(|child| collect(child.clone(), names));
    }
    fn collect_statement(kind: &StatementKind, names: &mut BTreeSet<String>) {
        match kind {
            StatementKind::Let(bindings) => {
                bindings.bindings.iter().for_each(|binding| collect((*binding.body).clone(), names));
            }
            StatementKind::Axiom { body, .. } => collect(body.clone(), names),
            StatementKind::Procedure(procedure) => {
                procedure.body.iter().for_each(|(kind, _)| collect_statement(kind, names));
            }
            StatementKind::Call { arguments, .. } => {
                arguments.iter().for_each(|argument| collect(argument.clone(), names));
            }
        }
    }
    let mut names = BTreeSet::new();
    for statement in &model.ast().statements {
        collect_statement(&statement.kind, &mut names);
    }
    names
}

fn buffer_semantics(order: Order) -> Semantics {
    if order == Order::Relaxed {
        return Semantics::RELAXED;
    }
    Semantics { order, classes: StorageClassSet::EMPTY.with(StorageClass::Buffer), ..Semantics::RELAXED }
}

fn publishing_semantics(order: Order) -> Semantics {
    Semantics { make_available: order.releases(), make_visible: order.acquires(), ..buffer_semantics(order) }
}

impl FormVocabulary {
    /// Returns the forms that the models can distinguish; a form that no model mentions is omitted.
    pub fn from_models(models: &[&Model]) -> FormVocabulary {
        let names: BTreeSet<String> = models.iter().flat_map(|model| used_names(model)).collect();
        let uses_any = |words: &[&str]| words.iter().any(|word| names.contains(*word));
        let has_scopes = uses_any(&["SG", "WG", "QF"]);
        let orders = uses_any(&["ACQ", "REL"]);
        let availability = uses_any(&["AV", "VIS", "SEMAV", "SEMVIS"]);
        let plain = uses_any(&["ATOM", "A"]);
        let device_domain = uses_any(&["AVDEVICE", "VISDEVICE"]);
        let has_system_sync = uses_any(&["ssw"]);
        let mut all_forms = Vec::new();
        let mut common_forms = Vec::new();
        let mut add = |form: SynthesizedInstruction, is_common: bool| {
            all_forms.push(form);
            if is_common {
                common_forms.push(form);
            }
        };
        for scope in [Scope::Device, Scope::Workgroup] {
            let wide = scope == Scope::Device;
            if !wide && !has_scopes {
                continue;
            }
            let atomic = |order| Access::Atomic { scope, semantics: buffer_semantics(order) };
            add(SynthesizedInstruction::Load(atomic(Order::Relaxed)), wide);
            add(SynthesizedInstruction::Store(atomic(Order::Relaxed)), wide);
            add(SynthesizedInstruction::Rmw(scope, Semantics::RELAXED), wide);
            if orders {
                add(SynthesizedInstruction::Load(atomic(Order::Acquire)), wide);
                add(SynthesizedInstruction::Store(atomic(Order::Release)), wide);
                add(SynthesizedInstruction::Rmw(scope, buffer_semantics(Order::AcquireRelease)), false);
                add(SynthesizedInstruction::Fence(scope, publishing_semantics(Order::AcquireRelease)), wide);
            }
            if plain && availability {
                add(SynthesizedInstruction::Load(Access::Coherent { scope }), wide);
                add(SynthesizedInstruction::Store(Access::Coherent { scope }), wide);
            }
        }
        if plain {
            add(SynthesizedInstruction::Load(Access::NonPrivate), false);
            add(SynthesizedInstruction::Store(Access::NonPrivate), false);
            if uses_any(&["NONPRIV", "PRIV"]) {
                add(SynthesizedInstruction::Load(Access::Private), false);
                add(SynthesizedInstruction::Store(Access::Private), false);
            }
        }
        if uses_any(&["syncbar", "CBAR"]) {
            add(
                SynthesizedInstruction::ControlBarrier(
                    orders.then(|| publishing_semantics(Order::AcquireRelease)),
                ),
                true,
            );
            if orders {
                add(SynthesizedInstruction::ControlBarrier(None), false);
            }
        }
        if device_domain {
            add(SynthesizedInstruction::AvailableToDevice, false);
            add(SynthesizedInstruction::VisibleFromDevice, false);
        }
        FormVocabulary { all_forms, common_forms, has_scopes, has_system_sync }
    }

    fn forms_for_size(&self, events: usize) -> &[SynthesizedInstruction] {
        if events <= MAX_FULL_VOCABULARY_SIZE { &self.all_forms } else { &self.common_forms }
    }

    /// Visits every program of `events` operations.
    pub fn for_each_program(
        &self,
        events: usize,
        visit: &mut dyn FnMut(Test) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let max_threads =
            if events <= MAX_FULL_VOCABULARY_SIZE { MAX_SMALL_THREADS } else { MAX_LARGE_THREADS };
        for threads in 1..=events.min(max_threads) {
            for sizes in partitions(events, threads) {
                self.for_each_with_sizes(&sizes, visit)?;
            }
        }
        ControlFlow::Continue(())
    }

    fn for_each_with_sizes(
        &self,
        sizes: &[usize],
        visit: &mut dyn FnMut(Test) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let events: usize = sizes.iter().sum();
        let forms = self.forms_for_size(events);
        let mut slots: Vec<(usize, usize)> = Vec::with_capacity(events);
        self.extend_program(sizes, forms, &mut slots, visit)
    }

    /// Extends a program by every form at every location that is named already or next.
    fn extend_program(
        &self,
        sizes: &[usize],
        forms: &[SynthesizedInstruction],
        slots: &mut Vec<(usize, usize)>,
        visit: &mut dyn FnMut(Test) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let events: usize = sizes.iter().sum();
        if slots.len() == events {
            return self.visit_program(sizes, forms, slots, visit);
        }
        // Locations are numbered by first use, so programs that differ only in names occur once.
        let location_count =
            slots.iter().filter(|(form, _)| forms[*form].is_access()).map(|(_, l)| l + 1).max();
        let named = location_count.unwrap_or(0);
        // A location with one access cannot affect the verdict, so each one needs a second access.
        let remaining = events - slots.len();
        let single_access_locations = (0..named)
            .filter(|l| slots.iter().filter(|(f, at)| forms[*f].is_access() && at == l).count() == 1)
            .count();
        if single_access_locations > remaining {
            return ControlFlow::Continue(());
        }
        for (index, form) in forms.iter().enumerate() {
            let locations = if form.is_access() { (named + 1).min(MAX_LOCATIONS) } else { 1 };
            for location in 0..locations {
                slots.push((index, location));
                let flow = self.extend_program(sizes, forms, slots, visit);
                slots.pop();
                flow?;
            }
        }
        ControlFlow::Continue(())
    }

    fn visit_program(
        &self,
        sizes: &[usize],
        forms: &[SynthesizedInstruction],
        slots: &[(usize, usize)],
        visit: &mut dyn FnMut(Test) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut columns: Vec<&[(usize, usize)]> = Vec::with_capacity(sizes.len());
        let mut rest = slots;
        for size in sizes {
            let (column, after) = rest.split_at(*size);
            columns.push(column);
            rest = after;
        }
        if !is_relevant(forms, slots, &columns) {
            return ControlFlow::Continue(());
        }
        // Threads of equal length are interchangeable, so keep them sorted by their forms.
        let forms_of = |column: &[(usize, usize)]| column.iter().map(|(form, _)| *form).collect::<Vec<_>>();
        let sorted = columns
            .windows(2)
            .all(|pair| pair[0].len() != pair[1].len() || forms_of(pair[0]) <= forms_of(pair[1]));
        if !sorted {
            return ControlFlow::Continue(());
        }
        let has_barrier =
            slots.iter().any(|(form, _)| matches!(forms[*form], SynthesizedInstruction::ControlBarrier(_)));
        let mut all_places = placements(columns.len(), false);
        // Two workgroups, then two subgroups of one; control barriers only synchronize within a workgroup.
        all_places.truncate(if self.has_scopes || has_barrier { 2 } else { 1 });
        for places in &all_places {
            let is_far = places.iter().any(|place| place.workgroup != 0);
            if has_barrier && is_far && columns.len() > 1 {
                continue;
            }
            for order in self.system_sync_choices(columns.len(), slots.len()) {
                visit(build_test(forms, &columns, places, &order))?;
            }
        }
        ControlFlow::Continue(())
    }

    /// The system synchronizations to try: none, and if models have any, one thread before another and all in a row.
    fn system_sync_choices(&self, threads: usize, events: usize) -> Vec<Vec<(u16, u16)>> {
        let mut found = vec![Vec::new()];
        if self.has_system_sync && threads > 1 && events <= MAX_FULL_VOCABULARY_SIZE {
            for from in 0..threads as u16 {
                for to in 0..threads as u16 {
                    if from != to {
                        found.push(vec![(from, to)]);
                    }
                }
            }
            if threads > 2 {
                let all = (0..threads as u16).flat_map(|to| (0..to).map(move |from| (from, to)));
                found.push(all.collect());
            }
        }
        found
    }
}

/// Returns true if every part of a program can matter.
fn is_relevant(
    forms: &[SynthesizedInstruction],
    slots: &[(usize, usize)],
    columns: &[&[(usize, usize)]],
) -> bool {
    let mut accesses = [0; MAX_LOCATIONS];
    let mut writes = [0; MAX_LOCATIONS];
    for (form, location) in slots {
        accesses[*location] += usize::from(forms[*form].is_access());
        writes[*location] += usize::from(forms[*form].is_write());
    }
    if accesses.iter().zip(writes).any(|(accesses, writes)| *accesses == 1 || (*accesses > 0 && writes == 0))
    {
        return false;
    }
    let mut barriers = 0;
    for column in columns {
        let last = column.len() - 1;
        for (position, (form, _)) in column.iter().enumerate() {
            let (first, last) = (position == 0, position == last);
            match forms[*form] {
                // A memory barrier relates earlier and later instructions, so it needs both.
                SynthesizedInstruction::Fence(..) if first || last => return false,
                SynthesizedInstruction::AvailableToDevice if first => return false,
                SynthesizedInstruction::VisibleFromDevice if last => return false,
                SynthesizedInstruction::ControlBarrier(_) => barriers += 1,
                _ => {}
            }
        }
    }
    let barrier_threads = columns.iter().filter(|column| {
        column.iter().any(|(form, _)| matches!(forms[*form], SynthesizedInstruction::ControlBarrier(_)))
    });
    let meeting = barrier_threads.count();
    // Each thread has at most one control barrier, and a barrier has at least two participants.
    barriers == meeting && meeting != 1 && slots.iter().any(|(form, _)| forms[*form].is_access())
}

fn build_test(
    forms: &[SynthesizedInstruction],
    columns: &[&[(usize, usize)]],
    places: &[Placement],
    order: &[(u16, u16)],
) -> Test {
    let mut draft = TestBuilder::new("synthesized");
    let mut values = [0i64; MAX_LOCATIONS];
    let mut unread = [true; MAX_LOCATIONS];
    for (column, place) in columns.iter().zip(places) {
        let thread = draft.add_thread(*place);
        for (form, index) in *column {
            let name = ['x', 'y'][*index];
            match forms[*form] {
                SynthesizedInstruction::Load(access) => {
                    let location = draft.get_or_add_location(name);
                    unread[*index] = false;
                    draft.push_load(thread, location, StorageClass::Buffer, access);
                }
                SynthesizedInstruction::Store(access) => {
                    let location = draft.get_or_add_location(name);
                    // Every store to a location writes a different value, so that the value of a read identifies
                    // its store.
                    values[*index] += 1;
                    let value = Operand::Constant(values[*index]);
                    draft.push_store(thread, location, value, StorageClass::Buffer, access);
                }
                SynthesizedInstruction::Rmw(scope, semantics) => {
                    let location = draft.get_or_add_location(name);
                    let destination = draft.add_register(thread);
                    unread[*index] = false;
                    let operation = RmwOperation::Fetch(ArithmeticOperation::Add, Operand::Constant(1));
                    let place = MemoryPlace::whole_location(location, StorageClass::Buffer);
                    draft.push_instruction(
                        thread,
                        InstructionKind::rmw(destination, place, operation, scope, semantics),
                    );
                }
                SynthesizedInstruction::Fence(scope, semantics) => {
                    draft.push_instruction(thread, InstructionKind::Fence { scope, semantics });
                }
                SynthesizedInstruction::ControlBarrier(semantics) => draft.push_instruction(
                    thread,
                    InstructionKind::ControlBarrier(ControlBarrier {
                        execution_scope: Scope::Workgroup,
                        memory_scope: Scope::Workgroup,
                        semantics,
                        id: "0".to_owned(),
                        resource: None,
                        quorum: None,
                    }),
                ),
                SynthesizedInstruction::AvailableToDevice => draft
                    .push_instruction(thread, InstructionKind::System(SystemOperation::AvailableToDevice)),
                SynthesizedInstruction::VisibleFromDevice => draft
                    .push_instruction(thread, InstructionKind::System(SystemOperation::VisibleFromDevice)),
            }
        }
    }
    for (from, to) in order {
        let point = |thread: u16| SyncPoint { thread: ThreadId(thread), instruction: None };
        draft.test.system_sync.push(SystemSync { from: point(*from), to: point(*to), span: Span::default() });
    }
    // A write without a reader is observed as a final value.
    let finals = (0..draft.test.locations.len()).filter(|l| unread[*l] && values[*l] > 1);
    draft.test.listed_terms = finals.map(|l| Term::Location(LocationId(l as u16), 0)).collect();
    draft.test
}

/// Returns the partitions of a number into `parts` summands, in descending order.
fn partitions(sum: usize, parts: usize) -> Vec<Vec<usize>> {
    fn extend(
        sum: usize,
        parts: usize,
        max_part: usize,
        chosen: &mut Vec<usize>,
        found: &mut Vec<Vec<usize>>,
    ) {
        if parts == 0 {
            if sum == 0 {
                found.push(chosen.clone());
            }
            return;
        }
        for part in (1..=max_part.min(sum)).rev() {
            chosen.push(part);
            extend(sum - part, parts - 1, part, chosen, found);
            chosen.pop();
        }
    }
    let mut found = Vec::new();
    extend(sum, parts, sum, &mut Vec::new(), &mut found);
    found
}
