//! Hash-consed expression graph with algebraic simplification.
//!
//! Equal expressions share one node. [`ExpressionGraph::simplify`] returns the node of an operation, or a cheaper
//! node of equal value by the laws of relation algebra. `[s]; r` and `r; [s]` become restrictions of rows and
//! columns, which cost a mask instead of a composition.

use super::plan::{BaseReference, NameId, NodeId, NodeKind, PlanNode, StatementId};
use super::vocabulary::{ClassFamilies, Membership, Vocabulary};
use crate::quick::QuickMap;

const EMPTY_SET: PlanNode = PlanNode::Empty(NodeKind::Set);
const EMPTY_RELATION: PlanNode = PlanNode::Empty(NodeKind::Relation);
const ALL_EVENTS: PlanNode = PlanNode::Full(NodeKind::Set);

pub(crate) struct ExpressionGraph<'a> {
    vocabulary: &'a Vocabulary,
    families: &'a ClassFamilies,
    pub(crate) nodes: Vec<PlanNode>,
    pub(crate) origins: Vec<StatementId>,
    pub(crate) names: Vec<String>,
    /// Change frequency of each node's value: the maximum over its operands.
    ranks: Vec<u8>,
    node_ids: QuickMap<PlanNode, NodeId>,
    /// The statement that new nodes are made for.
    pub(crate) statement: StatementId,
}

impl<'a> ExpressionGraph<'a> {
    pub(crate) fn new(vocabulary: &'a Vocabulary, families: &'a ClassFamilies) -> Self {
        ExpressionGraph {
            vocabulary,
            families,
            nodes: Vec::new(),
            origins: Vec::new(),
            names: Vec::new(),
            ranks: Vec::new(),
            node_ids: QuickMap::default(),
            statement: StatementId(0),
        }
    }

    pub(crate) fn node(&self, id: NodeId) -> PlanNode {
        self.nodes[id.to_index()]
    }

    /// Returns how often the node's value changes during the search.
    pub(crate) fn node_rank(&self, id: NodeId) -> u8 {
        self.ranks[id.to_index()]
    }

    pub(crate) fn intern_node(&mut self, node: PlanNode) -> NodeId {
        if let Some(known) = self.node_ids.get(&node) {
            return *known;
        }
        let rank = match node {
            PlanNode::BaseSet(base) | PlanNode::BaseRelation(base) => {
                self.names.get(base.name.0 as usize).map_or(0, |name| self.vocabulary.rank_of(name))
            }
            // The fixpoint is not known yet, so assume that it changes with every candidate.
            PlanNode::Recursive { .. } => u8::MAX,
            node => node.operand_nodes().map(|operand| self.node_rank(operand)).max().unwrap_or(0),
        };
        let id = NodeId(self.nodes.len() as u32);
        self.nodes.push(node);
        self.origins.push(self.statement);
        self.ranks.push(rank);
        self.node_ids.insert(node, id);
        id
    }

    fn name_id(&mut self, name: &str) -> NameId {
        let index = self.names.iter().position(|known| known == name).unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        });
        NameId(index as u32)
    }

    /// A base set or relation.
    pub(crate) fn base_node(&mut self, name: &str, kind: NodeKind) -> NodeId {
        if self.families.absent.iter().any(|absent| absent == name) {
            return self.intern_node(PlanNode::Empty(kind));
        }
        self.leaf_node(name, kind, None)
    }

    /// Returns the node of a base that the engine supplies, without applying known emptiness.
    pub(crate) fn leaf_node(&mut self, name: &str, kind: NodeKind, mask: Option<u8>) -> NodeId {
        let base = BaseReference { name: self.name_id(name), mask };
        self.intern_node(match kind {
            NodeKind::Set => PlanNode::BaseSet(base),
            NodeKind::Relation => PlanNode::BaseRelation(base),
        })
    }

    /// A set indexed by storage classes; classes that do not occur are left out, or leave nothing.
    pub(crate) fn indexed_set(&mut self, name: &str, membership: Membership, mask: u8) -> NodeId {
        let present = self.families.all_classes();
        let mask = match membership {
            // An event has only the storage classes that occur in the program. A set that requires
            // an absent class is empty.
            Membership::Any => mask & present,
            Membership::All if mask & !present != 0 => return self.intern_node(EMPTY_SET),
            Membership::All if mask == 0 => return self.intern_node(ALL_EVENTS),
            Membership::All => mask,
        };
        if mask == 0 || self.families.absent.iter().any(|absent| absent == name) {
            return self.intern_node(EMPTY_SET);
        }
        let base = BaseReference { name: self.name_id(name), mask: Some(mask) };
        self.intern_node(PlanNode::BaseSet(base))
    }

    /// Returns the node of an operation, or a cheaper node of equal value.
    pub(crate) fn simplify(&mut self, node: PlanNode) -> NodeId {
        match node {
            PlanNode::Union(..)
            | PlanNode::Intersection(..)
            | PlanNode::Difference(..)
            | PlanNode::Complement(..) => self.simplify_boolean(node),
            PlanNode::Domain(_) | PlanNode::Range(_) | PlanNode::IdentityOn(_) | PlanNode::Product(..) => {
                self.simplify_conversion(node)
            }
            PlanNode::RestrictRows(..) | PlanNode::RestrictColumns(..) => self.simplify_restriction(node),
            _ => self.simplify_steps(node),
        }
    }

    /// The masks of two nodes that are one indexed set of this membership at different classes.
    fn matching_indexed_sets(
        &self,
        a: PlanNode,
        b: PlanNode,
        membership: Membership,
    ) -> Option<(String, u8, u8)> {
        let (PlanNode::BaseSet(a), PlanNode::BaseSet(b)) = (a, b) else {
            return None;
        };
        let (Some(first), Some(second)) = (a.mask, b.mask) else {
            return None;
        };
        let name = self.names.get(a.name.0 as usize)?;
        (a.name == b.name && self.vocabulary.membership_of(name) == Some(membership))
            .then(|| (name.clone(), first, second))
    }

    /// Operations between sets and relations.
    fn simplify_conversion(&mut self, node: PlanNode) -> NodeId {
        match node {
            PlanNode::Domain(r) | PlanNode::Range(r) => {
                let [same, other] = match node {
                    PlanNode::Domain(_) => [PlanNode::Domain, PlanNode::Range],
                    _ => [PlanNode::Range, PlanNode::Domain],
                };
                match self.node(r) {
                    PlanNode::Empty(_) => self.intern_node(EMPTY_SET),
                    // Reflexive relations relate every event.
                    PlanNode::Identity | PlanNode::Full(_) | PlanNode::Star(_) | PlanNode::Optional(_) => {
                        self.intern_node(ALL_EVENTS)
                    }
                    PlanNode::IdentityOn(s) => s,
                    PlanNode::Inverse(a) => self.simplify(other(a)),
                    // The first step of a path starts where the path does, and the last ends where it ends.
                    PlanNode::Plus(a) => self.simplify(same(a)),
                    _ => self.intern_node(node),
                }
            }
            PlanNode::IdentityOn(s) => match self.node(s) {
                PlanNode::Empty(_) => self.intern_node(EMPTY_RELATION),
                PlanNode::Full(_) => self.intern_node(PlanNode::Identity),
                _ => self.intern_node(node),
            },
            PlanNode::Product(s, t) => match (self.node(s), self.node(t)) {
                (PlanNode::Empty(_), _) | (_, PlanNode::Empty(_)) => self.intern_node(EMPTY_RELATION),
                (PlanNode::Full(_), PlanNode::Full(_)) => {
                    self.intern_node(PlanNode::Full(NodeKind::Relation))
                }
                _ => self.intern_node(node),
            },
            _ => self.intern_node(node),
        }
    }

    /// Unions, intersections, differences and complements.
    fn simplify_boolean(&mut self, node: PlanNode) -> NodeId {
        match node {
            PlanNode::Union(kind, a, b) => match (self.node(a), self.node(b)) {
                _ if a == b => a,
                (PlanNode::Empty(_), _) | (_, PlanNode::Full(_)) => b,
                (_, PlanNode::Empty(_)) | (PlanNode::Full(_), _) => a,
                (PlanNode::Identity, _) => self.simplify(PlanNode::Optional(b)),
                (_, PlanNode::Identity) => self.simplify(PlanNode::Optional(a)),
                (PlanNode::IdentityOn(s), PlanNode::IdentityOn(t)) => {
                    self.simplify_nested(PlanNode::Union(NodeKind::Set, s, t), PlanNode::IdentityOn)
                }
                (first, second) => match self.matching_indexed_sets(first, second, Membership::Any) {
                    // `SC(a) | SC(b)` is `SC(a | b)`: an event of any of the classes.
                    Some((name, first, second)) => self.indexed_set(&name, Membership::Any, first | second),
                    // Operands of commutative operations are sorted, so that `a | b` and `b | a` share
                    // one node.
                    None => self.intern_node(PlanNode::Union(kind, a.min(b), a.max(b))),
                },
            },
            PlanNode::Intersection(kind, a, b) => match (self.node(a), self.node(b)) {
                _ if a == b => a,
                (PlanNode::Empty(_), _) | (_, PlanNode::Full(_)) => a,
                (_, PlanNode::Empty(_)) | (PlanNode::Full(_), _) => b,
                (PlanNode::Identity, PlanNode::Star(_) | PlanNode::Optional(_)) => a,
                (PlanNode::Star(_) | PlanNode::Optional(_), PlanNode::Identity) => b,
                (PlanNode::IdentityOn(s), PlanNode::IdentityOn(t)) => {
                    self.simplify_nested(PlanNode::Intersection(NodeKind::Set, s, t), PlanNode::IdentityOn)
                }
                // `r & (s * t)` is `[s]; r; [t]`: two masks instead of a product and an intersection.
                (_, PlanNode::Product(s, t)) => self.restrict_both_sides(a, s, t),
                (PlanNode::Product(s, t), _) => self.restrict_both_sides(b, s, t),
                (_, PlanNode::Complement(_, c)) => self.simplify(PlanNode::Difference(kind, a, c)),
                (PlanNode::Complement(_, c), _) => self.simplify(PlanNode::Difference(kind, b, c)),
                (first, second) => match self.matching_indexed_sets(first, second, Membership::All) {
                    // `SEM(a) & SEM(b)` is `SEM(a | b)`: an operation with all of the semantics.
                    Some((name, first, second)) => self.indexed_set(&name, Membership::All, first | second),
                    None => self.intern_node(PlanNode::Intersection(kind, a.min(b), a.max(b))),
                },
            },
            PlanNode::Difference(kind, a, b) => match (self.node(a), self.node(b)) {
                _ if a == b => self.intern_node(PlanNode::Empty(kind)),
                (_, PlanNode::Full(_)) => self.intern_node(PlanNode::Empty(kind)),
                (PlanNode::Empty(_), _) | (_, PlanNode::Empty(_)) => a,
                (PlanNode::Full(_), _) => self.simplify(PlanNode::Complement(kind, b)),
                (_, PlanNode::Complement(_, c)) => self.simplify(PlanNode::Intersection(kind, a, c)),
                (
                    PlanNode::Identity | PlanNode::IdentityOn(_),
                    PlanNode::Identity | PlanNode::Star(_) | PlanNode::Optional(_),
                ) => self.intern_node(PlanNode::Empty(kind)),
                (PlanNode::IdentityOn(s), PlanNode::IdentityOn(t)) => {
                    self.simplify_nested(PlanNode::Difference(NodeKind::Set, s, t), PlanNode::IdentityOn)
                }
                // `r \ (r; r+)`
                (_, PlanNode::Sequence(first, rest))
                    if first == a && self.node(rest) == PlanNode::Plus(a) =>
                {
                    self.simplify(PlanNode::Immediate(a))
                }
                _ => self.intern_node(node),
            },
            PlanNode::Complement(kind, a) => match self.node(a) {
                PlanNode::Empty(_) => self.intern_node(PlanNode::Full(kind)),
                PlanNode::Full(_) => self.intern_node(PlanNode::Empty(kind)),
                PlanNode::Complement(_, b) => b,
                _ => self.intern_node(node),
            },
            _ => self.intern_node(node),
        }
    }

    /// The operation `outer` on the value of `inner`.
    fn simplify_nested(&mut self, inner: PlanNode, outer: impl FnOnce(NodeId) -> PlanNode) -> NodeId {
        let inner = self.simplify(inner);
        self.simplify(outer(inner))
    }

    /// `r & (s * t)`
    fn restrict_both_sides(&mut self, r: NodeId, s: NodeId, t: NodeId) -> NodeId {
        self.simplify_nested(PlanNode::RestrictRows(s, r), |rows| PlanNode::RestrictColumns(rows, t))
    }

    fn simplify_restriction(&mut self, node: PlanNode) -> NodeId {
        let (PlanNode::RestrictRows(s, r) | PlanNode::RestrictColumns(r, s), is_rows) =
            (node, matches!(node, PlanNode::RestrictRows(..)))
        else {
            return self.intern_node(node);
        };
        let both = |t: NodeId| PlanNode::Intersection(NodeKind::Set, s, t);
        match (self.node(s), self.node(r)) {
            (PlanNode::Full(_), _) | (_, PlanNode::Empty(_)) => r,
            (PlanNode::Empty(_), _) => self.intern_node(EMPTY_RELATION),
            (_, PlanNode::Identity) => self.simplify(PlanNode::IdentityOn(s)),
            (_, PlanNode::IdentityOn(t)) => self.simplify_nested(both(t), PlanNode::IdentityOn),
            (_, PlanNode::Full(_)) => self.simplify_nested(ALL_EVENTS, |all| match is_rows {
                true => PlanNode::Product(s, all),
                false => PlanNode::Product(all, s),
            }),
            (_, PlanNode::Product(t, u)) if is_rows => {
                self.simplify_nested(both(t), |rows| PlanNode::Product(rows, u))
            }
            (_, PlanNode::Product(t, u)) => {
                self.simplify_nested(both(u), |columns| PlanNode::Product(t, columns))
            }
            (_, PlanNode::RestrictRows(t, inner)) if is_rows => {
                self.simplify_nested(both(t), |rows| PlanNode::RestrictRows(rows, inner))
            }
            // One order of the two restrictions: columns outside.
            (_, PlanNode::RestrictColumns(inner, t)) if is_rows => self.restrict_both_sides(inner, s, t),
            (_, PlanNode::RestrictColumns(inner, t)) => {
                self.simplify_nested(both(t), |columns| PlanNode::RestrictColumns(inner, columns))
            }
            _ => self.intern_node(node),
        }
    }

    /// Compositions, inverses and closures.
    fn simplify_steps(&mut self, node: PlanNode) -> NodeId {
        match node {
            PlanNode::Sequence(a, b) => match (self.node(a), self.node(b)) {
                (PlanNode::Empty(_), _) | (_, PlanNode::Identity) => a,
                (_, PlanNode::Empty(_)) | (PlanNode::Identity, _) => b,
                (PlanNode::IdentityOn(s), _) => self.simplify(PlanNode::RestrictRows(s, b)),
                (_, PlanNode::IdentityOn(t)) => self.simplify(PlanNode::RestrictColumns(a, t)),
                (PlanNode::Star(_), PlanNode::Star(_)) if a == b => a,
                (PlanNode::Star(r), PlanNode::Optional(q)) if r == q => a,
                (PlanNode::Optional(q), PlanNode::Star(r)) if r == q => b,
                (PlanNode::Star(r), PlanNode::Plus(q)) if r == q => b,
                (PlanNode::Plus(q), PlanNode::Star(r)) if r == q => a,
                // `r*; r` is `r+`.
                (PlanNode::Star(r), _) if r == b => self.simplify(PlanNode::Plus(r)),
                (_, PlanNode::Star(r)) if r == a => self.simplify(PlanNode::Plus(r)),
                _ => self.intern_node(node),
            },
            PlanNode::Inverse(a) => match self.node(a) {
                PlanNode::Empty(_) | PlanNode::Identity | PlanNode::Full(_) | PlanNode::IdentityOn(_) => a,
                PlanNode::Inverse(b) => b,
                PlanNode::Product(s, t) => self.simplify(PlanNode::Product(t, s)),
                PlanNode::RestrictRows(s, r) => {
                    self.simplify_nested(PlanNode::Inverse(r), |r| PlanNode::RestrictColumns(r, s))
                }
                PlanNode::RestrictColumns(r, s) => {
                    self.simplify_nested(PlanNode::Inverse(r), |r| PlanNode::RestrictRows(s, r))
                }
                _ => self.intern_node(node),
            },
            PlanNode::Plus(a) => match self.node(a) {
                // These are transitive already: a product that composes with itself is contained in
                // itself.
                PlanNode::Empty(_)
                | PlanNode::Identity
                | PlanNode::Full(_)
                | PlanNode::IdentityOn(_)
                | PlanNode::Product(..)
                | PlanNode::Plus(_)
                | PlanNode::Star(_) => a,
                PlanNode::Optional(b) => self.simplify(PlanNode::Star(b)),
                _ => self.intern_node(node),
            },
            PlanNode::Star(a) | PlanNode::Optional(a) => match (node, self.node(a)) {
                (_, PlanNode::Empty(_) | PlanNode::Identity | PlanNode::IdentityOn(_)) => {
                    self.intern_node(PlanNode::Identity)
                }
                (_, PlanNode::Full(_) | PlanNode::Star(_)) => a,
                (PlanNode::Optional(_), PlanNode::Optional(_)) => a,
                (_, PlanNode::Plus(b) | PlanNode::Optional(b)) => self.simplify(PlanNode::Star(b)),
                _ => self.intern_node(node),
            },
            PlanNode::Immediate(a) if self.node(a) == EMPTY_RELATION => a,
            _ => self.intern_node(node),
        }
    }
}
