//! A circuit of Boolean gates, hash-consed: a gate with the same operands exists once.

use rustc_hash::FxHashMap;

/// A node of a circuit or its negation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bit(u32);

impl Bit {
    /// The constant true.
    pub const TRUE: Bit = Bit(0);
    /// The constant false.
    pub const FALSE: Bit = Bit(1);

    /// Returns the value of a constant; `None` for a bit that depends on inputs.
    pub fn constant(self) -> Option<bool> {
        (self.0 < 2).then_some(self == Bit::TRUE)
    }

    /// Returns the number of the node, which is lower than that of each gate that depends on it.
    pub(crate) fn node(self) -> usize {
        (self.0 >> 1) as usize
    }

    pub(crate) fn is_negated(self) -> bool {
        self.0 & 1 == 1
    }

    /// Returns the bit if `condition` is true, else its negation.
    fn keep_if(self, condition: bool) -> Bit {
        Bit(self.0 ^ u32::from(!condition))
    }
}

impl From<bool> for Bit {
    fn from(value: bool) -> Bit {
        Bit::TRUE.keep_if(value)
    }
}

impl std::ops::Not for Bit {
    type Output = Bit;

    fn not(self) -> Bit {
        Bit(self.0 ^ 1)
    }
}

/// The gate of a node. Operands are canonical: sorted, and free of constants and repetitions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Gate {
    /// The constant true.
    True,
    Input,
    And(Box<[Bit]>),
    /// The exclusive or of two bits without negation.
    Xor(Bit, Bit),
    /// The second bit if the first holds, else the third. The first and the second are not negated.
    IfThenElse(Bit, Bit, Bit),
}

/// A set of gates over inputs.
#[derive(Clone, Debug)]
pub struct Circuit {
    gates: Vec<Gate>,
    known_gates: FxHashMap<Gate, Bit>,
}

impl Default for Circuit {
    fn default() -> Circuit {
        Circuit { gates: vec![Gate::True], known_gates: FxHashMap::default() }
    }
}

impl Circuit {
    /// Returns a new input, which may have either value.
    pub fn input(&mut self) -> Bit {
        self.push(Gate::Input)
    }

    /// Returns the number of nodes: inputs, gates and the constant.
    pub fn node_count(&self) -> usize {
        self.gates.len()
    }

    /// Returns a bit that holds if both hold.
    pub fn and(&mut self, a: Bit, b: Bit) -> Bit {
        self.all(&[a, b])
    }

    /// Returns a bit that holds if at least one holds.
    pub fn or(&mut self, a: Bit, b: Bit) -> Bit {
        self.any(&[a, b])
    }

    /// Returns a bit that holds if every bit holds; the empty conjunction holds.
    pub fn all(&mut self, bits: &[Bit]) -> Bit {
        let mut operands: Vec<Bit> = bits.iter().copied().filter(|bit| *bit != Bit::TRUE).collect();
        operands.sort_unstable();
        operands.dedup();
        // A bit and its negation are neighbours in this order.
        let contradicts = operands.windows(2).any(|pair| pair[0] == !pair[1]);
        match operands.as_slice() {
            [] => Bit::TRUE,
            [Bit::FALSE, ..] => Bit::FALSE,
            _ if contradicts => Bit::FALSE,
            [only] => *only,
            _ => self.share(Gate::And(operands.into())),
        }
    }

    /// Returns a bit that holds if some bit holds; the empty disjunction does not hold.
    pub fn any(&mut self, bits: &[Bit]) -> Bit {
        let negated: Vec<Bit> = bits.iter().map(|bit| !*bit).collect();
        !self.all(&negated)
    }

    /// Returns a bit that holds if exactly one of the two holds.
    pub fn xor(&mut self, a: Bit, b: Bit) -> Bit {
        let is_plain = a.is_negated() == b.is_negated();
        let (a, b) = (a.keep_if(!a.is_negated()), b.keep_if(!b.is_negated()));
        let plain = match (a.min(b), a.max(b)) {
            (a, b) if a == b => Bit::FALSE,
            (Bit::TRUE, other) => !other,
            (a, b) => self.share(Gate::Xor(a, b)),
        };
        plain.keep_if(is_plain)
    }

    /// Returns a bit that holds if both have the same value.
    pub fn iff(&mut self, a: Bit, b: Bit) -> Bit {
        !self.xor(a, b)
    }

    /// Returns a bit that holds if `premise` does not hold or `conclusion` does.
    pub fn implies(&mut self, premise: Bit, conclusion: Bit) -> Bit {
        self.any(&[!premise, conclusion])
    }

    /// Returns a bit with the value of `then` if `condition` holds, else that of `otherwise`.
    pub fn if_then_else(&mut self, condition: Bit, then: Bit, otherwise: Bit) -> Bit {
        if condition.is_negated() {
            return self.if_then_else(!condition, otherwise, then);
        }
        if condition == Bit::TRUE || then == otherwise {
            return then;
        }
        if then == !otherwise {
            return self.xor(condition, otherwise);
        }
        match (then, otherwise) {
            _ if then == Bit::TRUE || then == condition => self.any(&[condition, otherwise]),
            _ if then == Bit::FALSE || then == !condition => self.all(&[!condition, otherwise]),
            _ if otherwise == Bit::TRUE || otherwise == !condition => self.any(&[!condition, then]),
            _ if otherwise == Bit::FALSE || otherwise == condition => self.all(&[condition, then]),
            _ => {
                let is_plain = !then.is_negated();
                let gate = Gate::IfThenElse(condition, then.keep_if(is_plain), otherwise.keep_if(is_plain));
                self.share(gate).keep_if(is_plain)
            }
        }
    }

    /// Returns bits whose conjunction is this bit: the operands of a conjunction, else the bit itself.
    pub fn conjuncts(&self, bit: Bit) -> Vec<Bit> {
        match self.gates.get(bit.node()) {
            Some(Gate::And(operands)) if !bit.is_negated() => operands.to_vec(),
            Some(Gate::True) if !bit.is_negated() => Vec::new(),
            _ => vec![bit],
        }
    }

    /// Returns the value of each node for these values of inputs.
    pub(crate) fn evaluate(&self, value_of_input: impl Fn(usize) -> bool) -> Vec<bool> {
        let mut values: Vec<bool> = Vec::with_capacity(self.gates.len());
        for (node, gate) in self.gates.iter().enumerate() {
            let value = |bit: &Bit| values[bit.node()] != bit.is_negated();
            let result = match gate {
                Gate::True => true,
                Gate::Input => value_of_input(node),
                Gate::And(operands) => operands.iter().all(value),
                Gate::Xor(a, b) => value(a) != value(b),
                Gate::IfThenElse(condition, then, _) if value(condition) => value(then),
                Gate::IfThenElse(_, _, otherwise) => value(otherwise),
            };
            values.push(result);
        }
        values
    }

    pub(crate) fn gate(&self, node: usize) -> &Gate {
        &self.gates[node]
    }

    fn share(&mut self, gate: Gate) -> Bit {
        if let Some(known) = self.known_gates.get(&gate) {
            return *known;
        }
        let bit = self.push(gate.clone());
        self.known_gates.insert(gate, bit);
        bit
    }

    fn push(&mut self, gate: Gate) -> Bit {
        let bit = Bit((self.gates.len() as u32) << 1);
        self.gates.push(gate);
        bit
    }
}
