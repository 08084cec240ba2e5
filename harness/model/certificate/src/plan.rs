//! Resolves the names of a model and evaluates its relations to lower and upper bounds.
//!
//! Equal expressions share a node. A node that equals at both bounds before any choice is fixed; the others
//! are evaluated again for each step of a proof. The bounds of a difference use the opposite bound of the
//! subtrahend; recursive definitions are least fixpoints of both bounds, as their bodies are monotone.

use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use crate::cat::{AxiomShape, Binding, Bindings, Expression, ParsedModel, Statement};
use crate::format::FlagGroup;
use crate::relation::Relation;

/// Definitions that are always there, and the text of undefined initial values.
const PRELUDE: &str = "let toid(s) = [s] let po-loc = po & loc let rfe = rf & ext let rfi = rf & int
    let coe = co & ext let coi = co & int let fr = (rf^-1; co) \\ id let fre = fr & ext let fri = fr & int
    let fencerel(S) = po; [S]; po let M = R | W let emptyset = domain(0) let FW = W \\ domain(co)
    let co0 = loc & ((IW * (W \\ IW)) | ((W \\ FW) * FW)) let udr(r) = domain(r) | range(r)";
const UNINITIALISED_FLAG: &str = "flag ~empty ([UW]; rf; [R]) as uninitialised-read";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum ValueKind {
    Set,
    Relation,
    Either,
}

/// An operation on earlier nodes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Operation {
    Base(String),
    Rf,
    Co,
    Empty,
    Identity,
    Full,
    Union(usize, usize),
    Intersection(usize, usize),
    Difference(usize, usize),
    Sequence(usize, usize),
    Inverse(usize),
    Plus(usize),
    Domain(usize),
    Range(usize),
    /// A member of a recursive group.
    Member(usize),
}

/// An axiom or a flag.
#[derive(Clone, Debug)]
pub(crate) struct Axiom {
    /// The group of a flag; none for an axiom.
    pub(crate) flag: Option<FlagGroup>,
    negated: bool,
    shape: AxiomShape,
    node: usize,
    pub(crate) name: Option<String>,
    /// The nodes that it depends on, in order.
    needed_nodes: Vec<usize>,
}

/// Recursive definitions: members come first in the range, then the nodes that their bodies use.
#[derive(Clone, Debug)]
struct FixpointGroup {
    nodes: Range<usize>,
    bodies: Vec<usize>,
}

/// A model as operations in the order of evaluation.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    nodes: Vec<(Operation, ValueKind)>,
    groups: Vec<FixpointGroup>,
    pub(crate) axioms: Vec<Axiom>,
}

/// The bounds of each node; nodes that are not evaluated have none.
#[derive(Clone, Debug)]
pub(crate) struct Bounds {
    lower: Vec<Option<Relation>>,
    upper: Vec<Option<Relation>>,
}

/// The bounds of `rf` and `co`.
#[derive(Clone, Debug)]
pub(crate) struct Leaves {
    pub(crate) rf: (Relation, Relation),
    pub(crate) co: (Relation, Relation),
}

#[derive(Debug)]
enum ResolvedName {
    Node(usize),
    Mask(u8),
    Function(Rc<Binding>, Names),
}

/// The names in scope, the innermost first.
type Names = Option<Rc<Scope>>;

#[derive(Debug)]
struct Scope {
    name: String,
    meaning: ResolvedName,
    outer: Names,
}

/// A function, its scope, and its arguments: nodes, or masks as numbers from the top.
type CallKey = (*const Binding, *const Scope, Vec<usize>);

struct ModelCompiler<'b> {
    plan: Plan,
    node_ids: HashMap<Operation, usize>,
    /// The results of calls by the function, its scope and its arguments; each keeps the scope alive.
    calls: HashMap<CallKey, (usize, Names)>,
    bases: &'b dyn Fn(&str) -> Option<ValueKind>,
    /// The first node of the recursive group that is being compiled, and the nodes that depend on its members.
    group_start: Option<usize>,
    depends_on_group: Vec<bool>,
    /// All storage classes of the test, as a mask.
    storage_classes: u8,
}

/// Resolves a model for tests with these storage classes. `bases` gives the kind of each base name.
pub(crate) fn compile(
    model: &ParsedModel,
    storage_classes: u8,
    has_undefined: bool,
    bases: &dyn Fn(&str) -> Option<ValueKind>,
) -> Result<Plan, String> {
    let parse_text = |text: &str| {
        crate::cat::parse(&crate::format::ModelText {
            name: String::new(),
            text: text.to_owned(),
            includes: Default::default(),
        })
    };
    let mut extra_models = Vec::new();
    if has_undefined {
        extra_models.push(parse_text(UNINITIALISED_FLAG)?);
    }
    if model.options.get("asmo").is_some_and(|asmo| asmo == "transitive") {
        extra_models.push(parse_text("empty (asmo; asmo) \\ asmo as asmo-transitive")?);
    }
    let prelude = parse_text(PRELUDE)?;
    let mut compiler = ModelCompiler {
        plan: Plan::default(),
        node_ids: HashMap::new(),
        calls: HashMap::new(),
        bases,
        group_start: None,
        depends_on_group: Vec::new(),
        storage_classes,
    };
    let mut names: Names = None;
    let extra_statements = extra_models.iter().flat_map(|model| &model.statements);
    for statement in prelude.statements.iter().chain(&model.statements).chain(extra_statements) {
        match statement {
            Statement::Let(bindings) => names = compiler.compile_bindings(bindings, names)?,
            Statement::Axiom { flag, negated, shape, body, name } => {
                let node = compiler.compile_expression(body, &names)?;
                let group = match name.as_deref() {
                    Some("undefined-execution") => FlagGroup::UndefinedExecution,
                    Some("uninitialised-read") => FlagGroup::UninitialisedRead,
                    _ => FlagGroup::Race,
                };
                let (flag, needed) = (flag.then_some(group), compiler.plan.find_needed_nodes(node));
                let (negated, shape, name) = (*negated, *shape, name.clone());
                compiler.plan.axioms.push(Axiom { flag, negated, shape, node, name, needed_nodes: needed });
            }
        }
    }
    Ok(compiler.plan)
}

impl ModelCompiler<'_> {
    fn add_node(&mut self, operation: Operation, kind: ValueKind) -> Result<usize, String> {
        if let Some(known) = self.node_ids.get(&operation) {
            return Ok(*known);
        }
        let depends = |index: &usize| self.group_start.is_some() && self.depends_on_group[*index];
        if let Operation::Difference(_, right) = &operation
            && depends(right)
        {
            return Err("a recursive name is subtracted or complemented".to_owned());
        }
        let operands = operation.operands();
        self.depends_on_group.push(matches!(operation, Operation::Member(_)) || operands.iter().any(depends));
        self.plan.nodes.push((operation.clone(), kind));
        self.node_ids.insert(operation, self.plan.nodes.len() - 1);
        Ok(self.plan.nodes.len() - 1)
    }

    fn compile_bindings(&mut self, bindings: &Bindings, outer: Names) -> Result<Names, String> {
        let new_scope = |name: &str, meaning: ResolvedName, outer: Names| {
            Some(Rc::new(Scope { name: name.to_owned(), meaning, outer }))
        };
        let mut names = outer.clone();
        if !bindings.is_recursive {
            for binding in &bindings.list {
                let meaning = match &binding.parameters {
                    Some(_) => ResolvedName::Function(binding.clone(), outer.clone()),
                    None => ResolvedName::Node(self.compile_expression(&binding.body, &outer)?),
                };
                names = new_scope(&binding.name, meaning, names);
            }
            return Ok(names);
        }
        if self.group_start.is_some() || bindings.list.iter().any(|binding| binding.parameters.is_some()) {
            return Err("recursive definitions that nest or have parameters are not supported".to_owned());
        }
        let start = self.plan.nodes.len();
        self.group_start = Some(start);
        self.depends_on_group.fill(false);
        for binding in &bindings.list {
            let member = self.add_node(Operation::Member(self.plan.nodes.len()), ValueKind::Either)?;
            names = new_scope(&binding.name, ResolvedName::Node(member), names);
        }
        let bodies = bindings.list.iter().map(|binding| self.compile_expression(&binding.body, &names));
        let bodies = bodies.collect::<Result<Vec<usize>, String>>()?;
        self.group_start = None;
        self.plan.groups.push(FixpointGroup { nodes: start..self.plan.nodes.len(), bodies });
        Ok(names)
    }

    fn compile_expression(&mut self, expression: &Expression, names: &Names) -> Result<usize, String> {
        match expression {
            Expression::Name(name) => match lookup(name, names) {
                Some(ResolvedName::Node(node)) => Ok(*node),
                Some(_) => Err(format!("{name} is neither a set nor a relation")),
                None => self.compile_base(name),
            },
            Expression::Call(name, arguments) => self.compile_call(name, arguments, names),
            Expression::Binary(operator, operands) => {
                let (a, b) = (
                    self.compile_expression(&operands.0, names)?,
                    self.compile_expression(&operands.1, names)?,
                );
                self.add_binary(*operator, a, b)
            }
            Expression::Unary(operator, operand) => {
                let operand = self.compile_expression(operand, names)?;
                self.add_unary(operator, operand)
            }
            Expression::Let(bindings, body) => {
                let names = self.compile_bindings(bindings, names.clone())?;
                self.compile_expression(body, &names)
            }
            Expression::Union(variable, family, body) => {
                let family_mask = match (family.as_str(), lookup(family, names)) {
                    (_, Some(ResolvedName::Mask(mask))) => *mask,
                    ("masks" | "classes", None) => self.storage_classes,
                    _ => return Err(format!("{family} is not a family of storage classes")),
                };
                let single = family != "masks";
                let masks =
                    (1..=family_mask).filter(|m| m & !family_mask == 0 && (!single || m.count_ones() == 1));
                let mut union = self.add_node(Operation::Empty, ValueKind::Either)?;
                for mask in masks {
                    let (name, meaning) = (variable.clone(), ResolvedName::Mask(mask));
                    let inner = Some(Rc::new(Scope { name, meaning, outer: names.clone() }));
                    let member = self.compile_expression(body, &inner)?;
                    union = self.add_binary('|', union, member)?;
                }
                Ok(union)
            }
        }
    }

    fn compile_base(&mut self, name: &str) -> Result<usize, String> {
        match name {
            "rf" => self.add_node(Operation::Rf, ValueKind::Relation),
            "co" => self.add_node(Operation::Co, ValueKind::Relation),
            "id" => self.add_node(Operation::Identity, ValueKind::Relation),
            "_" => self.add_all_events(),
            "0" => self.add_node(Operation::Empty, ValueKind::Either),
            _ => match (self.bases)(name) {
                Some(kind) => self.add_node(Operation::Base(name.to_owned()), kind),
                None => Err(format!("no set or relation has the name {name}")),
            },
        }
    }

    /// The set of all events: the domain of the identity, so that it is a set and not a relation.
    fn add_all_events(&mut self) -> Result<usize, String> {
        let all = self.add_node(Operation::Identity, ValueKind::Relation)?;
        self.add_node(Operation::Domain(all), ValueKind::Set)
    }

    fn compile_call(&mut self, name: &str, arguments: &[Expression], names: &Names) -> Result<usize, String> {
        let mask = |argument: &Expression| match argument {
            Expression::Name(name) => match lookup(name, names) {
                Some(ResolvedName::Mask(mask)) => Some(*mask),
                _ => None,
            },
            _ => None,
        };
        let Some(meaning) = lookup(name, names) else {
            if let ("SC" | "SEM", [argument]) = (name, arguments) {
                let mask =
                    mask(argument).ok_or("the argument of SC or SEM must be a family of storage classes")?;
                return self.compile_indexed_set(name, mask);
            }
            let [argument] = arguments else { return Err(format!("no function has the name {name}")) };
            let operand = self.compile_expression(argument, names)?;
            return match name {
                "domain" => self.add_node(Operation::Domain(operand), ValueKind::Set),
                "range" => self.add_node(Operation::Range(operand), ValueKind::Set),
                "imm" => {
                    let closure = self.add_node(Operation::Plus(operand), ValueKind::Relation)?;
                    let longer = self.add_node(Operation::Sequence(operand, closure), ValueKind::Relation)?;
                    self.add_node(Operation::Difference(operand, longer), ValueKind::Relation)
                }
                _ => Err(format!("no function has the name {name}")),
            };
        };
        let ResolvedName::Function(function, definition_scope) = meaning else {
            return Err(format!("{name} is not a function"));
        };
        let parameters = function.parameters.as_deref().unwrap_or_default();
        if parameters.len() != arguments.len() {
            return Err(format!("{name} has {} parameters", parameters.len()));
        }
        let (mut key, mut inner) = (Vec::new(), definition_scope.clone());
        for (parameter, argument) in parameters.iter().zip(arguments) {
            let meaning = match mask(argument) {
                Some(mask) => ResolvedName::Mask(mask),
                None => ResolvedName::Node(self.compile_expression(argument, names)?),
            };
            key.push(match meaning {
                ResolvedName::Node(node) => node,
                ResolvedName::Mask(mask) => usize::MAX - usize::from(mask),
                ResolvedName::Function(..) => return Err("a function as an argument".to_owned()),
            });
            inner = Some(Rc::new(Scope { name: parameter.clone(), meaning, outer: inner }));
        }
        let scope = definition_scope.as_ref().map_or(std::ptr::null(), Rc::as_ptr);
        let key = (Rc::as_ptr(function), scope, key);
        if let Some((known, _)) = self.calls.get(&key) {
            return Ok(*known);
        }
        let result = self.compile_expression(&function.body, &inner)?;
        self.calls.insert(key, (result, definition_scope.clone()));
        Ok(result)
    }

    /// `SC(M)`: accesses of a class in M; `SEM(M)`: operations whose semantics include all of M.
    fn compile_indexed_set(&mut self, name: &str, mask: u8) -> Result<usize, String> {
        let (prefix, operator) = if name == "SC" { ("SC", '|') } else { ("SEMSC", '&') };
        let mut all = None;
        for class in (0..8).filter(|class| mask >> class & 1 == 1) {
            let one = self.compile_base(&format!("{prefix}{class}"))?;
            all = Some(all.map_or(Ok(one), |all| self.add_binary(operator, all, one))?);
        }
        all.ok_or_else(|| "an empty family of storage classes".to_owned())
    }

    fn add_binary(&mut self, operator: char, a: usize, b: usize) -> Result<usize, String> {
        let kinds = (self.plan.nodes[a].1, self.plan.nodes[b].1);
        let kind = if kinds.0 == ValueKind::Either { kinds.1 } else { kinds.0 };
        let agrees = kinds.1 == kind || kinds.1 == ValueKind::Either;
        match operator {
            '|' | '&' | '\\' if !agrees => Err(format!("{operator} of a set and a relation")),
            '|' => self.add_node(Operation::Union(a, b), kind),
            '&' => self.add_node(Operation::Intersection(a, b), kind),
            '\\' => self.add_node(Operation::Difference(a, b), kind),
            ';' if kinds.0 == ValueKind::Set || kinds.1 == ValueKind::Set => Err("`;` of a set".to_owned()),
            ';' => self.add_node(Operation::Sequence(a, b), ValueKind::Relation),
            _ if kinds.0 == ValueKind::Relation || kinds.1 == ValueKind::Relation => {
                Err("a product of relations".to_owned())
            }
            _ => {
                let all = self.add_node(Operation::Full, ValueKind::Relation)?;
                let left = self.add_node(Operation::Sequence(a, all), ValueKind::Relation)?;
                self.add_node(Operation::Sequence(left, b), ValueKind::Relation)
            }
        }
    }

    fn add_unary(&mut self, operator: &str, operand: usize) -> Result<usize, String> {
        let kind = self.plan.nodes[operand].1;
        match operator {
            "[]" if kind == ValueKind::Relation => Err("`[…]` of a relation".to_owned()),
            // A set is its identity relation; the intersection with `id` is of the other kind.
            "[]" => {
                let all = self.add_node(Operation::Identity, ValueKind::Relation)?;
                self.add_node(Operation::Intersection(operand, all), ValueKind::Relation)
            }
            "~" => {
                let all = match kind {
                    ValueKind::Set => self.add_all_events()?,
                    ValueKind::Relation => self.add_node(Operation::Full, ValueKind::Relation)?,
                    ValueKind::Either => return Err("`~` of neither a set nor a relation".to_owned()),
                };
                self.add_node(Operation::Difference(all, operand), kind)
            }
            _ if kind == ValueKind::Set => Err(format!("`{operator}` of a set")),
            "-1" => self.add_node(Operation::Inverse(operand), ValueKind::Relation),
            "+" => self.add_node(Operation::Plus(operand), ValueKind::Relation),
            _ => {
                let all = self.add_node(Operation::Identity, ValueKind::Relation)?;
                let inner = match operator {
                    "*" => self.add_node(Operation::Plus(operand), ValueKind::Relation)?,
                    _ => operand,
                };
                self.add_node(Operation::Union(inner, all), ValueKind::Relation)
            }
        }
    }
}

fn lookup<'n>(name: &str, names: &'n Names) -> Option<&'n ResolvedName> {
    let mut scope = names.as_ref();
    while let Some(inner) = scope {
        if inner.name == name {
            return Some(&inner.meaning);
        }
        scope = inner.outer.as_ref();
    }
    None
}

impl Operation {
    fn operands(&self) -> Vec<usize> {
        match *self {
            Operation::Union(a, b)
            | Operation::Intersection(a, b)
            | Operation::Difference(a, b)
            | Operation::Sequence(a, b) => vec![a, b],
            Operation::Inverse(a) | Operation::Plus(a) | Operation::Domain(a) | Operation::Range(a) => {
                vec![a]
            }
            Operation::Base(_)
            | Operation::Rf
            | Operation::Co
            | Operation::Empty
            | Operation::Identity
            | Operation::Full
            | Operation::Member(_) => Vec::new(),
        }
    }
}

impl Plan {
    fn group_of(&self, node: usize) -> Option<&FixpointGroup> {
        self.groups.iter().find(|group| group.nodes.contains(&node))
    }

    fn find_needed_nodes(&self, root: usize) -> Vec<usize> {
        let mut needed = vec![false; self.nodes.len()];
        let mut worklist = vec![root];
        while let Some(node) = worklist.pop() {
            if !std::mem::replace(&mut needed[node], true) {
                worklist.extend(self.nodes[node].0.operands());
                if let (Operation::Member(_), Some(group)) = (&self.nodes[node].0, self.group_of(node)) {
                    worklist.extend(group.nodes.clone());
                }
            }
        }
        (0..needed.len()).filter(|node| needed[*node]).collect()
    }

    /// Evaluates everything before any choice.
    pub(crate) fn evaluate_root(
        &self,
        n: usize,
        leaves: &Leaves,
        base: &dyn Fn(&str) -> Option<Relation>,
    ) -> Result<Bounds, String> {
        let mut bounds = Bounds { lower: vec![None; self.nodes.len()], upper: vec![None; self.nodes.len()] };
        for (index, (operation, _)) in self.nodes.iter().enumerate() {
            let value = match operation {
                Operation::Base(name) => base(name).ok_or_else(|| format!("no base {name}"))?,
                Operation::Empty | Operation::Member(_) => Relation::empty(n),
                Operation::Identity => Relation::identity(n),
                Operation::Full => Relation::full(n),
                _ => continue,
            };
            (bounds.lower[index], bounds.upper[index]) = (Some(value.clone()), Some(value));
        }
        let is_needed =
            |node: &usize| self.axioms.iter().any(|axiom| axiom.needed_nodes.binary_search(node).is_ok());
        let needed: Vec<usize> = (0..self.nodes.len()).filter(is_needed).collect();
        self.evaluate_nodes(&needed, leaves, &mut bounds, None);
        Ok(bounds)
    }

    /// Returns true if no execution within the leaves' bounds satisfies the axiom, or raises the flag.
    pub(crate) fn is_refuted(&self, axiom: &Axiom, root: &Bounds, leaves: &Leaves) -> bool {
        let mut bounds = Bounds { lower: vec![None; self.nodes.len()], upper: vec![None; self.nodes.len()] };
        let varying =
            axiom.needed_nodes.iter().copied().filter(|node| root.lower[*node] != root.upper[*node]);
        let open: Vec<usize> = varying.collect();
        self.evaluate_nodes(&open, leaves, &mut bounds, Some(root));
        // A constraint that the lower bound violates is violated by all relations above it.
        let bound = bounds.get(Some(root), axiom.node, axiom.negated);
        bound.is_some_and(|relation| satisfies_shape(axiom.shape, relation) == axiom.negated)
    }

    /// Evaluates these nodes, in order, and whole recursive groups.
    fn evaluate_nodes(&self, nodes: &[usize], leaves: &Leaves, bounds: &mut Bounds, root: Option<&Bounds>) {
        let mut evaluated_end = 0;
        for node in nodes.iter().copied() {
            if node < evaluated_end {
                continue;
            }
            let Some(group) = self.group_of(node) else {
                self.evaluate_node(node, leaves, bounds, root);
                continue;
            };
            let members = group.nodes.start..group.nodes.start + group.bodies.len();
            let empty = bounds.get(root, group.nodes.start, false).map(|member| member.difference(member));
            members.clone().for_each(|member| {
                (bounds.lower[member], bounds.upper[member]) = (empty.clone(), empty.clone());
            });
            loop {
                (members.end..group.nodes.end)
                    .for_each(|inner| self.evaluate_node(inner, leaves, bounds, root));
                let mut changed = false;
                for (member, body) in members.clone().zip(&group.bodies) {
                    for upper in [false, true] {
                        let value = bounds.get(root, *body, upper).cloned();
                        changed |= value.as_ref() != bounds.get(root, member, upper);
                        *bounds.slot(member, upper) = value;
                    }
                }
                if !changed {
                    break;
                }
            }
            evaluated_end = group.nodes.end;
        }
    }

    fn evaluate_node(&self, node: usize, leaves: &Leaves, bounds: &mut Bounds, root: Option<&Bounds>) {
        for upper in [false, true] {
            let get = |operand: usize, upper: bool| bounds.get(root, operand, upper);
            let operand_pair = |a: usize, b: usize| Some((get(a, upper)?, get(b, upper)?));
            let select =
                |pair: &(Relation, Relation)| Some(if upper { pair.1.clone() } else { pair.0.clone() });
            let value = match self.nodes[node].0 {
                Operation::Rf => select(&leaves.rf),
                Operation::Co => select(&leaves.co),
                Operation::Union(a, b) => operand_pair(a, b).map(|(a, b)| a.union(b)),
                Operation::Intersection(a, b) => operand_pair(a, b).map(|(a, b)| a.intersection(b)),
                Operation::Difference(a, b) => {
                    get(a, upper).zip(get(b, !upper)).map(|(a, b)| a.difference(b))
                }
                Operation::Sequence(a, b) => operand_pair(a, b).map(|(a, b)| a.compose(b)),
                Operation::Inverse(a) => get(a, upper).map(Relation::inverse),
                Operation::Plus(a) => get(a, upper).map(Relation::plus),
                Operation::Domain(a) => get(a, upper).map(Relation::domain),
                Operation::Range(a) => get(a, upper).map(|a| a.inverse().domain()),
                Operation::Base(_)
                | Operation::Empty
                | Operation::Identity
                | Operation::Full
                | Operation::Member(_) => continue,
            };
            *bounds.slot(node, upper) = value;
        }
    }
}

impl Bounds {
    fn slot(&mut self, node: usize, upper: bool) -> &mut Option<Relation> {
        if upper { &mut self.upper[node] } else { &mut self.lower[node] }
    }

    fn get<'s>(&'s self, root: Option<&'s Bounds>, node: usize, upper: bool) -> Option<&'s Relation> {
        let bound_of = |bounds: &'s Bounds| {
            if upper { bounds.upper[node].as_ref() } else { bounds.lower[node].as_ref() }
        };
        bound_of(self).or_else(|| root.and_then(bound_of))
    }
}

fn satisfies_shape(shape: AxiomShape, relation: &Relation) -> bool {
    match shape {
        AxiomShape::Acyclic => !relation.plus().has_loop(),
        AxiomShape::Irreflexive => !relation.has_loop(),
        AxiomShape::Empty => relation.is_empty(),
    }
}
