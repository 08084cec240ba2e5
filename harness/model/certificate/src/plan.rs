//! Resolves the names of a model and evaluates its relations to lower and upper bounds.
//!
//! Equal expressions share a node. A node that equals at both bounds before any choice is fixed; the others
//! are evaluated again for each step of a proof. The bounds of a difference use the opposite bound of the
//! subtrahend; recursive definitions are least fixpoints of both bounds, as their bodies are monotone.

use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use crate::cat::{Binding, Bindings, Expression, Model, Shape, Statement};
use crate::format::FlagGroup;
use crate::relation::Relation;

/// Definitions that are always there, and the text of undefined initial values.
const PRELUDE: &str = "let toid(s) = [s] let po-loc = po & loc let rfe = rf & ext let rfi = rf & int
    let coe = co & ext let coi = co & int let fr = (rf^-1; co) \\ id let fre = fr & ext let fri = fr & int
    let fencerel(S) = po; [S]; po let M = R | W let emptyset = domain(0) let FW = W \\ domain(co)
    let co0 = loc & ((IW * (W \\ IW)) | ((W \\ FW) * FW)) let udr(r) = domain(r) | range(r)";
const UNINITIALISED: &str = "flag ~empty ([UW]; rf; [R]) as uninitialised-read";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Kind {
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
    shape: Shape,
    node: usize,
    pub(crate) name: Option<String>,
    /// The nodes that it depends on, in order.
    needed: Vec<usize>,
}

/// Recursive definitions: members come first in the range, then the nodes that their bodies use.
#[derive(Clone, Debug)]
struct Group {
    nodes: Range<usize>,
    bodies: Vec<usize>,
}

/// A model as operations in the order of evaluation.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    nodes: Vec<(Operation, Kind)>,
    groups: Vec<Group>,
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
enum Meaning {
    Node(usize),
    Mask(u8),
    Function(Rc<Binding>, Names),
}

/// The names in scope, the innermost first.
type Names = Option<Rc<Scope>>;

#[derive(Debug)]
struct Scope {
    name: String,
    meaning: Meaning,
    outer: Names,
}

/// A function, its scope, and its arguments: nodes, or masks as numbers from the top.
type CallKey = (*const Binding, *const Scope, Vec<usize>);

struct Compiler<'b> {
    plan: Plan,
    known: HashMap<Operation, usize>,
    /// The results of calls by the function, its scope and its arguments; each keeps the scope alive.
    calls: HashMap<CallKey, (usize, Names)>,
    bases: &'b dyn Fn(&str) -> Option<Kind>,
    /// The first node of the recursive group that is being compiled, and the nodes that depend on its members.
    open: Option<usize>,
    depends: Vec<bool>,
    /// All storage classes of the test, as a mask.
    classes: u8,
}

/// Resolves a model for tests with these storage classes. `bases` gives the kind of each base name.
pub(crate) fn compile(
    model: &Model,
    classes: u8,
    undefined: bool,
    bases: &dyn Fn(&str) -> Option<Kind>,
) -> Result<Plan, String> {
    let text = |text: &str| {
        crate::cat::parse(&crate::format::ModelText {
            name: String::new(),
            text: text.to_owned(),
            includes: Default::default(),
        })
    };
    let mut more = Vec::new();
    if undefined {
        more.push(text(UNINITIALISED)?);
    }
    if model.options.get("asmo").is_some_and(|asmo| asmo == "transitive") {
        more.push(text("empty (asmo; asmo) \\ asmo as asmo-transitive")?);
    }
    let prelude = text(PRELUDE)?;
    let mut compiler = Compiler {
        plan: Plan::default(),
        known: HashMap::new(),
        calls: HashMap::new(),
        bases,
        open: None,
        depends: Vec::new(),
        classes,
    };
    let mut names: Names = None;
    let later = more.iter().flat_map(|model| &model.statements);
    for statement in prelude.statements.iter().chain(&model.statements).chain(later) {
        match statement {
            Statement::Let(bindings) => names = compiler.bindings(bindings, names)?,
            Statement::Axiom { flag, negated, shape, body, name } => {
                let node = compiler.expression(body, &names)?;
                let group = match name.as_deref() {
                    Some("undefined-execution") => FlagGroup::UndefinedExecution,
                    Some("uninitialised-read") => FlagGroup::UninitialisedRead,
                    _ => FlagGroup::Race,
                };
                let (flag, needed) = (flag.then_some(group), compiler.plan.needed(node));
                let (negated, shape, name) = (*negated, *shape, name.clone());
                compiler.plan.axioms.push(Axiom { flag, negated, shape, node, name, needed });
            }
        }
    }
    Ok(compiler.plan)
}

impl Compiler<'_> {
    fn node(&mut self, operation: Operation, kind: Kind) -> Result<usize, String> {
        if let Some(known) = self.known.get(&operation) {
            return Ok(*known);
        }
        let depends = |index: &usize| self.open.is_some() && self.depends[*index];
        if let Operation::Difference(_, right) = &operation
            && depends(right)
        {
            return Err("a recursive name is subtracted or complemented".to_owned());
        }
        let operands = operation.operands();
        self.depends.push(matches!(operation, Operation::Member(_)) || operands.iter().any(depends));
        self.plan.nodes.push((operation.clone(), kind));
        self.known.insert(operation, self.plan.nodes.len() - 1);
        Ok(self.plan.nodes.len() - 1)
    }

    fn bindings(&mut self, bindings: &Bindings, outer: Names) -> Result<Names, String> {
        let with = |name: &str, meaning: Meaning, outer: Names| {
            Some(Rc::new(Scope { name: name.to_owned(), meaning, outer }))
        };
        let mut names = outer.clone();
        if !bindings.recursive {
            for binding in &bindings.list {
                let meaning = match &binding.parameters {
                    Some(_) => Meaning::Function(binding.clone(), outer.clone()),
                    None => Meaning::Node(self.expression(&binding.body, &outer)?),
                };
                names = with(&binding.name, meaning, names);
            }
            return Ok(names);
        }
        if self.open.is_some() || bindings.list.iter().any(|binding| binding.parameters.is_some()) {
            return Err("recursive definitions that nest or have parameters are not supported".to_owned());
        }
        let start = self.plan.nodes.len();
        self.open = Some(start);
        self.depends.fill(false);
        for binding in &bindings.list {
            let member = self.node(Operation::Member(self.plan.nodes.len()), Kind::Either)?;
            names = with(&binding.name, Meaning::Node(member), names);
        }
        let bodies = bindings.list.iter().map(|binding| self.expression(&binding.body, &names));
        let bodies = bodies.collect::<Result<Vec<usize>, String>>()?;
        self.open = None;
        self.plan.groups.push(Group { nodes: start..self.plan.nodes.len(), bodies });
        Ok(names)
    }

    fn expression(&mut self, expression: &Expression, names: &Names) -> Result<usize, String> {
        match expression {
            Expression::Name(name) => match lookup(name, names) {
                Some(Meaning::Node(node)) => Ok(*node),
                Some(_) => Err(format!("{name} is neither a set nor a relation")),
                None => self.base(name),
            },
            Expression::Call(name, arguments) => self.call(name, arguments, names),
            Expression::Binary(operator, operands) => {
                let (a, b) = (self.expression(&operands.0, names)?, self.expression(&operands.1, names)?);
                self.binary(*operator, a, b)
            }
            Expression::Unary(operator, operand) => {
                let operand = self.expression(operand, names)?;
                self.unary(operator, operand)
            }
            Expression::Let(bindings, body) => {
                let names = self.bindings(bindings, names.clone())?;
                self.expression(body, &names)
            }
            Expression::Union(variable, family, body) => {
                let within = match (family.as_str(), lookup(family, names)) {
                    (_, Some(Meaning::Mask(mask))) => *mask,
                    ("masks" | "classes", None) => self.classes,
                    _ => return Err(format!("{family} is not a family of storage classes")),
                };
                let single = family != "masks";
                let masks = (1..=within).filter(|m| m & !within == 0 && (!single || m.count_ones() == 1));
                let mut all = self.node(Operation::Empty, Kind::Either)?;
                for mask in masks {
                    let (name, meaning) = (variable.clone(), Meaning::Mask(mask));
                    let inner = Some(Rc::new(Scope { name, meaning, outer: names.clone() }));
                    let member = self.expression(body, &inner)?;
                    all = self.binary('|', all, member)?;
                }
                Ok(all)
            }
        }
    }

    fn base(&mut self, name: &str) -> Result<usize, String> {
        match name {
            "rf" => self.node(Operation::Rf, Kind::Relation),
            "co" => self.node(Operation::Co, Kind::Relation),
            "id" => self.node(Operation::Identity, Kind::Relation),
            "_" => self.set_of_all(),
            "0" => self.node(Operation::Empty, Kind::Either),
            _ => match (self.bases)(name) {
                Some(kind) => self.node(Operation::Base(name.to_owned()), kind),
                None => Err(format!("no set or relation has the name {name}")),
            },
        }
    }

    /// The set of all events: the domain of the identity, so that it is a set and not a relation.
    fn set_of_all(&mut self) -> Result<usize, String> {
        let all = self.node(Operation::Identity, Kind::Relation)?;
        self.node(Operation::Domain(all), Kind::Set)
    }

    fn call(&mut self, name: &str, arguments: &[Expression], names: &Names) -> Result<usize, String> {
        let mask = |argument: &Expression| match argument {
            Expression::Name(name) => match lookup(name, names) {
                Some(Meaning::Mask(mask)) => Some(*mask),
                _ => None,
            },
            _ => None,
        };
        let Some(meaning) = lookup(name, names) else {
            if let ("SC" | "SEM", [argument]) = (name, arguments) {
                let mask =
                    mask(argument).ok_or("the argument of SC or SEM must be a family of storage classes")?;
                return self.indexed(name, mask);
            }
            let [argument] = arguments else { return Err(format!("no function has the name {name}")) };
            let operand = self.expression(argument, names)?;
            return match name {
                "domain" => self.node(Operation::Domain(operand), Kind::Set),
                "range" => self.node(Operation::Range(operand), Kind::Set),
                "imm" => {
                    let closure = self.node(Operation::Plus(operand), Kind::Relation)?;
                    let longer = self.node(Operation::Sequence(operand, closure), Kind::Relation)?;
                    self.node(Operation::Difference(operand, longer), Kind::Relation)
                }
                _ => Err(format!("no function has the name {name}")),
            };
        };
        let Meaning::Function(function, inside) = meaning else {
            return Err(format!("{name} is not a function"));
        };
        let parameters = function.parameters.as_deref().unwrap_or_default();
        if parameters.len() != arguments.len() {
            return Err(format!("{name} has {} parameters", parameters.len()));
        }
        let (mut key, mut inner) = (Vec::new(), inside.clone());
        for (parameter, argument) in parameters.iter().zip(arguments) {
            let meaning = match mask(argument) {
                Some(mask) => Meaning::Mask(mask),
                None => Meaning::Node(self.expression(argument, names)?),
            };
            key.push(match meaning {
                Meaning::Node(node) => node,
                Meaning::Mask(mask) => usize::MAX - usize::from(mask),
                Meaning::Function(..) => return Err("a function as an argument".to_owned()),
            });
            inner = Some(Rc::new(Scope { name: parameter.clone(), meaning, outer: inner }));
        }
        let scope = inside.as_ref().map_or(std::ptr::null(), Rc::as_ptr);
        let key = (Rc::as_ptr(function), scope, key);
        if let Some((known, _)) = self.calls.get(&key) {
            return Ok(*known);
        }
        let result = self.expression(&function.body, &inner)?;
        self.calls.insert(key, (result, inside.clone()));
        Ok(result)
    }

    /// `SC(M)`: accesses of a class in M; `SEM(M)`: operations whose semantics include all of M.
    fn indexed(&mut self, name: &str, mask: u8) -> Result<usize, String> {
        let (prefix, operator) = if name == "SC" { ("SC", '|') } else { ("SEMSC", '&') };
        let mut all = None;
        for class in (0..8).filter(|class| mask >> class & 1 == 1) {
            let one = self.base(&format!("{prefix}{class}"))?;
            all = Some(all.map_or(Ok(one), |all| self.binary(operator, all, one))?);
        }
        all.ok_or_else(|| "an empty family of storage classes".to_owned())
    }

    fn binary(&mut self, operator: char, a: usize, b: usize) -> Result<usize, String> {
        let kinds = (self.plan.nodes[a].1, self.plan.nodes[b].1);
        let kind = if kinds.0 == Kind::Either { kinds.1 } else { kinds.0 };
        let agrees = kinds.1 == kind || kinds.1 == Kind::Either;
        match operator {
            '|' | '&' | '\\' if !agrees => Err(format!("{operator} of a set and a relation")),
            '|' => self.node(Operation::Union(a, b), kind),
            '&' => self.node(Operation::Intersection(a, b), kind),
            '\\' => self.node(Operation::Difference(a, b), kind),
            ';' if kinds.0 == Kind::Set || kinds.1 == Kind::Set => Err("`;` of a set".to_owned()),
            ';' => self.node(Operation::Sequence(a, b), Kind::Relation),
            _ if kinds.0 == Kind::Relation || kinds.1 == Kind::Relation => {
                Err("a product of relations".to_owned())
            }
            _ => {
                let all = self.node(Operation::Full, Kind::Relation)?;
                let left = self.node(Operation::Sequence(a, all), Kind::Relation)?;
                self.node(Operation::Sequence(left, b), Kind::Relation)
            }
        }
    }

    fn unary(&mut self, operator: &str, operand: usize) -> Result<usize, String> {
        let kind = self.plan.nodes[operand].1;
        match operator {
            "[]" if kind == Kind::Relation => Err("`[…]` of a relation".to_owned()),
            // A set is its identity relation; the intersection with `id` is of the other kind.
            "[]" => {
                let all = self.node(Operation::Identity, Kind::Relation)?;
                self.node(Operation::Intersection(operand, all), Kind::Relation)
            }
            "~" => {
                let all = match kind {
                    Kind::Set => self.set_of_all()?,
                    Kind::Relation => self.node(Operation::Full, Kind::Relation)?,
                    Kind::Either => return Err("`~` of neither a set nor a relation".to_owned()),
                };
                self.node(Operation::Difference(all, operand), kind)
            }
            _ if kind == Kind::Set => Err(format!("`{operator}` of a set")),
            "-1" => self.node(Operation::Inverse(operand), Kind::Relation),
            "+" => self.node(Operation::Plus(operand), Kind::Relation),
            _ => {
                let all = self.node(Operation::Identity, Kind::Relation)?;
                let inner = match operator {
                    "*" => self.node(Operation::Plus(operand), Kind::Relation)?,
                    _ => operand,
                };
                self.node(Operation::Union(inner, all), Kind::Relation)
            }
        }
    }
}

fn lookup<'n>(name: &str, names: &'n Names) -> Option<&'n Meaning> {
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
    fn group(&self, node: usize) -> Option<&Group> {
        self.groups.iter().find(|group| group.nodes.contains(&node))
    }

    fn needed(&self, root: usize) -> Vec<usize> {
        let mut needed = vec![false; self.nodes.len()];
        let mut open = vec![root];
        while let Some(node) = open.pop() {
            if !std::mem::replace(&mut needed[node], true) {
                open.extend(self.nodes[node].0.operands());
                if let (Operation::Member(_), Some(group)) = (&self.nodes[node].0, self.group(node)) {
                    open.extend(group.nodes.clone());
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
            |node: &usize| self.axioms.iter().any(|axiom| axiom.needed.binary_search(node).is_ok());
        let needed: Vec<usize> = (0..self.nodes.len()).filter(is_needed).collect();
        self.evaluate(&needed, leaves, &mut bounds, None);
        Ok(bounds)
    }

    /// Returns true if no execution within the leaves' bounds satisfies the axiom, or raises the flag.
    pub(crate) fn is_refuted(&self, axiom: &Axiom, root: &Bounds, leaves: &Leaves) -> bool {
        let mut bounds = Bounds { lower: vec![None; self.nodes.len()], upper: vec![None; self.nodes.len()] };
        let open = axiom.needed.iter().copied().filter(|node| root.lower[*node] != root.upper[*node]);
        let open: Vec<usize> = open.collect();
        self.evaluate(&open, leaves, &mut bounds, Some(root));
        // A constraint that the lower bound violates is violated by all relations above it.
        let bound = bounds.get(Some(root), axiom.node, axiom.negated);
        bound.is_some_and(|relation| has_shape(axiom.shape, relation) == axiom.negated)
    }

    /// Evaluates these nodes, in order, and whole recursive groups.
    fn evaluate(&self, nodes: &[usize], leaves: &Leaves, bounds: &mut Bounds, root: Option<&Bounds>) {
        let mut done = 0;
        for node in nodes.iter().copied() {
            if node < done {
                continue;
            }
            let Some(group) = self.group(node) else {
                self.apply(node, leaves, bounds, root);
                continue;
            };
            let members = group.nodes.start..group.nodes.start + group.bodies.len();
            let empty = bounds.get(root, group.nodes.start, false).map(|member| member.difference(member));
            members.clone().for_each(|member| {
                (bounds.lower[member], bounds.upper[member]) = (empty.clone(), empty.clone());
            });
            loop {
                (members.end..group.nodes.end).for_each(|inner| self.apply(inner, leaves, bounds, root));
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
            done = group.nodes.end;
        }
    }

    fn apply(&self, node: usize, leaves: &Leaves, bounds: &mut Bounds, root: Option<&Bounds>) {
        for upper in [false, true] {
            let get = |operand: usize, upper: bool| bounds.get(root, operand, upper);
            let both = |a: usize, b: usize| Some((get(a, upper)?, get(b, upper)?));
            let pick =
                |pair: &(Relation, Relation)| Some(if upper { pair.1.clone() } else { pair.0.clone() });
            let value = match self.nodes[node].0 {
                Operation::Rf => pick(&leaves.rf),
                Operation::Co => pick(&leaves.co),
                Operation::Union(a, b) => both(a, b).map(|(a, b)| a.union(b)),
                Operation::Intersection(a, b) => both(a, b).map(|(a, b)| a.intersection(b)),
                Operation::Difference(a, b) => {
                    get(a, upper).zip(get(b, !upper)).map(|(a, b)| a.difference(b))
                }
                Operation::Sequence(a, b) => both(a, b).map(|(a, b)| a.compose(b)),
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
        let of = |bounds: &'s Bounds| {
            if upper { bounds.upper[node].as_ref() } else { bounds.lower[node].as_ref() }
        };
        of(self).or_else(|| root.and_then(of))
    }
}

fn has_shape(shape: Shape, relation: &Relation) -> bool {
    match shape {
        Shape::Acyclic => !relation.plus().has_loop(),
        Shape::Irreflexive => !relation.has_loop(),
        Shape::Empty => relation.is_empty(),
    }
}
