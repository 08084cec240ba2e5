//! Questions about final states: formulas over the elements of variables.

use std::collections::{BTreeSet, HashMap};

use arithmetic::mask;
use litmus::{Comparison, Condition, Question, QuestionKind, Span, Term};

use crate::error::{Problem, Refusal};
use crate::layout::{MemoryCell, ObjectId, specialize};
use crate::open_memory::OpenPart;
use crate::options::AnalysisOptions;
use spirv_reader::annotations::{Formula, FormulaTerm, PathStep, Quantifier};
use spirv_reader::{SourcePosition, Specialized, SpirvModule, memory_class};

/// The resolved question and filter of a kernel.
pub struct ResolvedQuestion {
    pub cells: BTreeSet<MemoryCell>,
    /// The question as its author wrote it.
    pub text: Option<String>,
    question: Option<(QuestionKind, ResolvedFormula, u32)>,
    filter: Option<ResolvedFormula>,
}

/// The variables that the names in a formula refer to.
pub struct NameScope<'a> {
    pub specialized: &'a Specialized<'a>,
    /// The first variable with the same binding, for variables that share one.
    pub canonical: &'a HashMap<u32, u32>,
}

impl NameScope<'_> {
    fn canonical_variable(&self, variable: u32) -> u32 {
        self.canonical.get(&variable).copied().unwrap_or(variable)
    }
}

/// A term of a formula with the names that it may use.
struct TermScope<'a> {
    names: &'a NameScope<'a>,
    /// The origin of the formula.
    source: &'static str,
    term: &'a FormulaTerm,
}

impl TermScope<'_> {
    fn invalid_term(&self, what: String) -> Problem {
        Problem::Claim { of: self.source, claim: self.term.to_string(), what, word: None }
    }

    fn unknown_word(&self, word: &str, what: String, known: Vec<String>) -> Problem {
        let word = Some((word.to_owned(), known));
        Problem::Claim { of: self.source, claim: self.term.to_string(), what, word }
    }

    /// Returns the variable, the offset and the size of an element of shared memory.
    fn resolve_element(&self, name: &str, mut path: Vec<PathStep>) -> Result<(u32, u64, u32), Problem> {
        let specialized = self.names.specialized;
        let module = specialized.module;
        // The name is a descriptor, as in `0.1`, or that of a variable.
        let bound = spirv_reader::annotations::parse_binding(name).and_then(|at| module.variable_at(at));
        let named = || module.id_by_name(name);
        let id = match bound.or_else(named).filter(|id| module.variables.contains_key(id)) {
            Some(id) => id,
            None => {
                let (id, by_member) = self.find_unnamed_variable(name, !path.is_empty())?;
                if by_member {
                    path.insert(0, PathStep::Member(name.to_owned()));
                }
                id
            }
        };
        let variable = &module.variables[&id];
        if memory_class(variable.class).is_none() {
            return Err(self.invalid_term(format!("`{name}` is not shared memory")));
        }
        let has_wrapper = |ty: u32, is_index: bool| {
            module.wraps_one_part(ty) || bound.is_some() && is_index && module.has_one_member(ty)
        };
        // As written first; only if that fails, through structures that compilers add.
        let (ty, offset) = match self.scalar_at(variable.ty, &path, |_, _| false) {
            Ok(found) => found,
            Err(why) => self.scalar_at(variable.ty, &path, has_wrapper).map_err(|_| why)?,
        };
        Ok((id, offset, u32::try_from(specialized.size_of(ty)?).unwrap_or(0)))
    }

    /// Returns the variable without a name that a name refers to, and true if its member has the name.
    ///
    /// An unnamed block has the name of its type, as in findings, or only its member is named.
    fn find_unnamed_variable(&self, name: &str, has_path: bool) -> Result<(u32, bool), Problem> {
        let module = self.names.specialized.module;
        let single_match = |matches: &dyn Fn(u32) -> bool| {
            let mut ids = module
                .variables
                .iter()
                .filter(|(id, variable)| module.is_unnamed(**id) && matches(variable.ty))
                .map(|(id, _)| *id);
            ids.next().filter(|_| ids.next().is_none())
        };
        let block = single_match(&|ty| has_path && module.display_name(ty) == *name);
        let holder = || single_match(&|ty| module.member_by_name(ty, name).is_some()).map(|id| (id, true));
        block.map(|id| (id, false)).or_else(holder).ok_or_else(|| {
            let shared =
                module.variables.iter().filter(|(_, variable)| memory_class(variable.class).is_some());
            let known = shared.flat_map(|(id, variable)| {
                let members = module.names_of_members(variable.ty).into_iter();
                let members = members.filter(|_| module.is_unnamed(*id));
                members.chain([module.variable_name(*id, variable.ty)])
            });
            let known: BTreeSet<String> = known.collect();
            let listed: Vec<String> = known.iter().take(MAX_LISTED).map(|name| format!("`{name}`")).collect();
            let listing = match listed.is_empty() {
                true => "the shader has no shared variable".to_owned(),
                false => format!("the shader has {}", listed.join(", ")),
            };
            self.unknown_word(name, format!("no variable `{name}`; {listing}"), known.into_iter().collect())
        })
    }

    /// Returns type and offset of the scalar at a path in a type. `has_wrapper` decides, by a type and whether an index
    /// follows, whether the path skips a structure.
    fn scalar_at(
        &self,
        ty: u32,
        path: &[PathStep],
        has_wrapper: impl Fn(u32, bool) -> bool,
    ) -> Result<(u32, u64), Problem> {
        let (specialized, term) = (self.names.specialized, self.term);
        let module = specialized.module;
        let (mut ty, mut offset) = (ty, 0);
        for part in path {
            // Compilers wrap an array in a structure whose member has no name in the source.
            while has_wrapper(ty, matches!(part, PathStep::Index(_))) {
                let part = specialized.part_of(ty, 0)?;
                (ty, offset) = (part.ty, offset + part.offset);
            }
            let index = match part {
                PathStep::Index(index) => *index,
                PathStep::Member(member) => module.member_by_name(ty, member).ok_or_else(|| {
                    self.unknown_word(member, format!("no member `{member}`"), module.names_of_members(ty))
                })?,
            };
            let part =
                specialized.part_of(ty, index).map_err(|problem| self.invalid_term(problem.to_string()))?;
            if let Some(length) = part.length.filter(|length| index >= *length) {
                return Err(self.invalid_term(format!("the index {index} is beyond the {length} elements")));
            }
            (ty, offset) = (part.ty, offset + part.offset);
        }
        // A structure with one member may be used instead of the member.
        while !specialized.is_scalar(ty)? && specialized.part_count(ty).is_ok_and(|count| count == 1) {
            // The member need not be at the start of its structure.
            let part = specialized.part_of(ty, 0)?;
            (ty, offset) = (part.ty, offset + part.offset);
        }
        if !specialized.is_scalar(ty)? {
            let expected = match module.names_of_members(ty).first() {
                Some(member) => format!("a member such as `{term}.{member}`"),
                None => format!("an element such as `{term}[0]`"),
            };
            return Err(self.invalid_term(format!("`{term}` is not a scalar; expected {expected}")));
        }
        Ok((ty, offset))
    }
}

/// Calls `then` with the names of a module.
fn with_names<T>(
    module: &SpirvModule,
    options: &AnalysisOptions,
    then: impl FnOnce(&NameScope<'_>) -> Result<T, Refusal>,
) -> Result<T, Refusal> {
    then(&NameScope { specialized: &specialize(module, options)?, canonical: &HashMap::new() })
}

/// The source of a command line claim.
const ASSERT_OPTION: &str = "--assert";
/// The source of a term of `refine --open`.
const OPEN_OPTION: &str = "--open";
/// Upper bound on the names that an error lists.
const MAX_LISTED: usize = 12;

/// A formula over cells.
#[derive(Clone, Debug)]
enum ResolvedFormula {
    Compare(Result<i64, MemoryCell>, Comparison, Result<i64, MemoryCell>),
    And(Vec<ResolvedFormula>),
    Or(Vec<ResolvedFormula>),
    Not(Box<ResolvedFormula>),
    Known(bool),
}

impl ResolvedQuestion {
    pub fn new(names: &NameScope<'_>, options: &AnalysisOptions) -> Result<ResolvedQuestion, Refusal> {
        let mut question =
            ResolvedQuestion { cells: BTreeSet::new(), text: None, question: None, filter: None };
        let annotations = &names.specialized.module.annotations;
        if let Some(formula) = &options.assertion {
            let resolved = question.resolve(names, ASSERT_OPTION, formula)?;
            question.question = Some((QuestionKind::Forall, resolved, 0));
            question.text = Some(format!("forall ({formula})"));
        } else if let Some(first) = annotations.outputs.first() {
            if annotations.outputs.iter().any(|output| output.quantifier != first.quantifier) {
                return Err(Problem::Annotation("questions with different quantifiers".to_owned()).into());
            }
            let kind = match first.quantifier {
                Quantifier::Forall => QuestionKind::Forall,
                Quantifier::Exists => QuestionKind::Exists,
                Quantifier::NotExists => QuestionKind::NotExists,
            };
            // Several annotations form one question, the conjunction of their formulas.
            let parts = annotations
                .outputs
                .iter()
                .map(|output| {
                    let resolved = question.resolve(names, "@Output", &output.formula);
                    resolved.map_err(|problem| problem.located_at(SourcePosition::Line(output.line)))
                })
                .collect::<Result<_, _>>()?;
            question.question = Some((kind, ResolvedFormula::And(parts), first.line));
            let word = match first.quantifier {
                Quantifier::Forall => "forall",
                Quantifier::Exists => "exists",
                Quantifier::NotExists => "not exists",
            };
            let all = match &annotations.outputs[..] {
                [one] => one.formula.clone(),
                all => Formula::And(all.iter().map(|output| output.formula.clone()).collect()),
            };
            question.text = Some(format!("{word} ({all})"));
        }
        if let Some(filter) = annotations.filter.as_ref().filter(|_| !options.ignore_filter) {
            question.filter = Some(question.resolve(names, "@Filter", filter)?);
        }
        Ok(question)
    }

    fn resolve(
        &mut self,
        names: &NameScope<'_>,
        source: &'static str,
        formula: &Formula,
    ) -> Result<ResolvedFormula, Problem> {
        let mut all = |parts: &[Formula]| -> Result<Vec<ResolvedFormula>, Problem> {
            parts.iter().map(|part| self.resolve(names, source, part)).collect()
        };
        Ok(match formula {
            Formula::Known(known) => ResolvedFormula::Known(*known),
            Formula::AtLine(_, inner) => self.resolve(names, source, inner)?,
            Formula::Not(inner) => ResolvedFormula::Not(Box::new(self.resolve(names, source, inner)?)),
            Formula::And(parts) => ResolvedFormula::And(all(parts)?),
            Formula::Or(parts) => ResolvedFormula::Or(all(parts)?),
            Formula::Compare(left, sign, right) => {
                let comparison = match *sign {
                    "==" => Comparison::Equal,
                    "!=" => Comparison::NotEqual,
                    "<" => Comparison::Less,
                    "<=" => Comparison::LessOrEqual,
                    ">" => Comparison::Greater,
                    _ => Comparison::GreaterOrEqual,
                };
                let (left, right) =
                    (self.resolve_term(names, source, left)?, self.resolve_term(names, source, right)?);
                ResolvedFormula::Compare(left, comparison, right)
            }
        })
    }

    fn resolve_term(
        &mut self,
        names: &NameScope<'_>,
        source: &'static str,
        term: &FormulaTerm,
    ) -> Result<Result<i64, MemoryCell>, Problem> {
        let module = names.specialized.module;
        let scope = TermScope { names, source, term };
        let (id, offset, bytes) = match term {
            FormulaTerm::Number(number) => return Ok(Ok(*number)),
            FormulaTerm::Element(name, path) => scope.resolve_element(name, path.clone())?,
            FormulaTerm::Bytes { binding, offset, bytes, initial, .. } => {
                match module.variable_at(*binding) {
                    Some(id) => (id, *offset, *bytes),
                    None => return Ok(Ok(*initial)),
                }
            }
        };
        let object = ObjectId { variable: names.canonical_variable(id), instance: 0 };
        let cell = MemoryCell { object, offset, bytes };
        self.cells.insert(cell);
        Ok(Err(cell))
    }

    /// Returns the numbers that cells are compared with.
    pub fn compared_numbers(&self) -> BTreeSet<u64> {
        let mut numbers = BTreeSet::new();
        let conditions = self.question.iter().map(|(_, resolved, _)| resolved);
        for resolved in conditions.chain(&self.filter) {
            resolved.collect_numbers(&mut numbers);
        }
        numbers
    }

    /// Returns question and filter in litmus syntax.
    pub fn to_conditions(
        &self,
        locate: &impl Fn(MemoryCell) -> Term,
    ) -> (Option<Question>, Option<Condition>) {
        let question = self.question.as_ref().map(|(kind, resolved, line)| Question {
            kind: *kind,
            condition: resolved.to_condition(locate),
            span: Span { line: *line, ..Span::default() },
        });
        (question, self.filter.as_ref().map(|filter| filter.to_condition(locate)))
    }
}

impl ResolvedFormula {
    fn collect_cells(&self, cells: &mut BTreeSet<MemoryCell>) {
        match self {
            ResolvedFormula::Known(_) => {}
            ResolvedFormula::Not(inner) => inner.collect_cells(cells),
            ResolvedFormula::And(parts) | ResolvedFormula::Or(parts) => {
                parts.iter().for_each(|part| part.collect_cells(cells));
            }
            ResolvedFormula::Compare(left, _, right) => {
                cells.extend([left, right].iter().filter_map(|side| side.as_ref().err()));
            }
        }
    }

    fn collect_numbers(&self, numbers: &mut BTreeSet<u64>) {
        match self {
            ResolvedFormula::Known(_) => {}
            ResolvedFormula::Not(inner) => inner.collect_numbers(numbers),
            ResolvedFormula::And(parts) | ResolvedFormula::Or(parts) => {
                parts.iter().for_each(|part| part.collect_numbers(numbers));
            }
            ResolvedFormula::Compare(left, _, right) => match (left, right) {
                (Ok(number), Err(cell)) | (Err(cell), Ok(number)) => {
                    let number = *number as u64 & mask(cell.bytes.saturating_mul(8));
                    // A comparison changes at the number or at the next one.
                    numbers.extend([number, number.wrapping_add(1)]);
                }
                _ => {}
            },
        }
    }

    fn to_condition(&self, locate: &impl Fn(MemoryCell) -> Term) -> Condition {
        // Cell contents are unsigned, of the cell's width.
        let term = |side: &Result<i64, MemoryCell>, other: &Result<i64, MemoryCell>| match (side, other) {
            (Ok(number), Err(cell)) => {
                Term::Constant((*number as u64 & mask(cell.bytes.saturating_mul(8))) as i64)
            }
            (Ok(number), Ok(_)) => Term::Constant(*number),
            (Err(cell), _) => locate(*cell),
        };
        let fold = |parts: &[ResolvedFormula], join: fn(Box<Condition>, Box<Condition>) -> Condition| {
            let mut parts = parts.iter().map(|part| part.to_condition(locate)).rev();
            let last = parts.next().unwrap_or(Condition::True);
            parts.fold(last, |all, part| join(Box::new(part), Box::new(all)))
        };
        match self {
            ResolvedFormula::Known(true) => Condition::True,
            ResolvedFormula::Known(false) => Condition::Not(Box::new(Condition::True)),
            ResolvedFormula::Not(inner) => Condition::Not(Box::new(inner.to_condition(locate))),
            ResolvedFormula::And(parts) => fold(parts, Condition::And),
            ResolvedFormula::Or(parts) => fold(parts, Condition::Or),
            ResolvedFormula::Compare(left, comparison, right) => {
                let (left, right) = (term(left, right), term(right, left));
                Condition::Compare { left, comparison: *comparison, right }
            }
        }
    }
}

/// Returns the scalar that a term such as `0.1[2]` names.
///
/// # Errors
/// Fails if the descriptor or the element does not exist.
pub fn resolve_open_part(
    module: &SpirvModule,
    options: &AnalysisOptions,
    term: &FormulaTerm,
) -> Result<OpenPart, Refusal> {
    with_names(module, options, |names| {
        let mut question =
            ResolvedQuestion { cells: BTreeSet::new(), text: None, question: None, filter: None };
        let side = question.resolve_term(names, OPEN_OPTION, term);
        let side = side?;
        let number = || Problem::Annotation(format!("--open {term}: a number, expected SET.BINDING[INDEX]"));
        let cell = side.err().ok_or_else(number)?;
        let own = module.decorations_of(cell.object.variable);
        Ok(OpenPart {
            set: own.set.unwrap_or(0),
            binding: own.binding.unwrap_or(0),
            scalar: Some((cell.offset, cell.bytes)),
        })
    })
}

/// A claim about final contents, to check observed ones.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The claim as its author wrote it.
    pub text: String,
    /// The cells: descriptor set, binding and element, offset and size in bytes.
    pub places: Vec<((u32, u32, u32), u64, u32)>,
    resolved: ResolvedFormula,
    cells: Vec<MemoryCell>,
    /// The parts of a conjunction.
    parts: Vec<ClaimPart>,
}

#[derive(Clone, Debug)]
struct ClaimPart {
    text: String,
    /// Its line in a script.
    line: Option<u32>,
    formula: ResolvedFormula,
}

/// A part of a claim that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViolatedPart<'c> {
    pub text: &'c str,
    /// Its line in a script.
    pub line: Option<u32>,
    /// The cells that it uses, by index.
    pub cells: BTreeSet<usize>,
}

/// Checks that a claim refers to existing, shared memory.
///
/// # Errors
/// Fails if a name does not exist or is not shared memory.
pub fn check_claim(module: &SpirvModule, options: &AnalysisOptions) -> Result<(), Refusal> {
    if options.assertion.is_none() {
        return Ok(());
    }
    with_names(module, options, |names| ResolvedQuestion::new(names, options).map(|_| ()))
}

/// Returns the claim about every final state, if there is one.
///
/// # Errors
/// Fails if a name does not exist or is not a buffer.
pub fn resolve_claim(module: &SpirvModule, options: &AnalysisOptions) -> Result<Option<Claim>, Refusal> {
    let Some(formula) = &options.assertion else { return Ok(None) };
    with_names(module, options, |names| {
        let mut question =
            ResolvedQuestion { cells: BTreeSet::new(), text: None, question: None, filter: None };
        let resolved = question.resolve(names, ASSERT_OPTION, formula)?;
        let cells: Vec<MemoryCell> = question.cells.iter().copied().collect();
        let mut places = Vec::with_capacity(cells.len());
        for cell in &cells {
            let (set, binding) = module.descriptor_of(cell.object.variable).ok_or_else(|| {
                let name = module.display_name(cell.object.variable);
                Problem::Annotation(format!("`{name}` is not a buffer, so its contents cannot be observed"))
            })?;
            let element = cell.object.instance.saturating_sub(1) as u32;
            places.push(((set, binding, element), cell.offset, cell.bytes));
        }
        let text = formula.to_string();
        let part = |(whole, resolved): (&Formula, &ResolvedFormula)| ClaimPart {
            text: whole.to_string(),
            line: whole.placed().0,
            formula: resolved.clone(),
        };
        let parts = match (formula, &resolved) {
            (Formula::And(texts), ResolvedFormula::And(all)) => texts.iter().zip(all).map(part).collect(),
            _ => vec![part((formula, &resolved))],
        };
        Ok(Some(Claim { text, places, resolved, cells, parts }))
    })
}

impl Claim {
    /// Evaluates the claim for the values of its cells.
    pub fn holds(&self, values: &[u64]) -> bool {
        self.is_true(&self.resolved, values)
    }

    fn is_true(&self, formula: &ResolvedFormula, values: &[u64]) -> bool {
        formula.holds(&|cell| {
            let position = self.cells.binary_search(&cell).ok();
            (position.and_then(|position| values.get(position)).copied().unwrap_or(0), cell.bytes)
        })
    }

    /// Returns the parts that do not hold for the values of its cells.
    pub fn violated_parts(&self, values: &[u64]) -> Vec<ViolatedPart<'_>> {
        let violated = self.parts.iter().filter(|part| !self.is_true(&part.formula, values));
        let cells_of = |formula: &ResolvedFormula| -> BTreeSet<usize> {
            let mut cells = BTreeSet::new();
            formula.collect_cells(&mut cells);
            cells.iter().filter_map(|cell| self.cells.binary_search(cell).ok()).collect()
        };
        violated
            .map(|part| ViolatedPart { text: &part.text, line: part.line, cells: cells_of(&part.formula) })
            .collect()
    }
}

impl ResolvedFormula {
    fn holds(&self, value: &dyn Fn(MemoryCell) -> (u64, u32)) -> bool {
        match self {
            ResolvedFormula::Known(known) => *known,
            ResolvedFormula::Not(inner) => !inner.holds(value),
            ResolvedFormula::And(parts) => parts.iter().all(|part| part.holds(value)),
            ResolvedFormula::Or(parts) => parts.iter().any(|part| part.holds(value)),
            ResolvedFormula::Compare(left, comparison, right) => {
                let cells = [left, right].map(|side| side.as_ref().err().map(|cell| value(*cell)));
                let bytes = cells.iter().flatten().map(|(_, bytes)| *bytes).max().unwrap_or(8);
                let number = |side: &Result<i64, MemoryCell>| match side {
                    Ok(number) => *number as u64 & mask(bytes.saturating_mul(8)),
                    Err(cell) => value(*cell).0,
                };
                comparison.holds(number(left), number(right))
            }
        }
    }
}
