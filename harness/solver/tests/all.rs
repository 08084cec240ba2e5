//! Circuits and bit-vectors against plain arithmetic, through clauses and the solver.

use rand::{Rng, RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use solver::{Bit, BitVector, Budget, BudgetTracker, Circuit, CircuitSolver, ShiftKind};

type Build = fn(&mut Circuit, &BitVector, &BitVector) -> BitVector;
/// The result for two operands and a width, of which only the lowest bits count.
type Expected = fn(u64, u64, u32) -> u64;

fn signed(value: u64, width: u32) -> i64 {
    (value << (64 - width)) as i64 >> (64 - width)
}

fn one_bit(bit: Bit) -> BitVector {
    BitVector::from_iter([bit])
}

const OPERATIONS: &[(&str, Build, Expected)] = &[
    ("add", |c, a, b| c.add(a, b), |a, b, _| a + b),
    ("sub", |c, a, b| c.sub(a, b), |a, b, _| a.wrapping_sub(b)),
    ("neg", |c, a, _| c.neg(a), |a, _, _| a.wrapping_neg()),
    ("carry", |c, a, b| one_bit(c.add_with_carry(a, b, Bit::TRUE).1), |a, b, w| (a + b + 1) >> w),
    ("mul", |c, a, b| c.mul(a, b), |a, b, _| a.wrapping_mul(b)),
    ("udiv", |c, a, b| c.udiv(a, b), |a, b, _| a.checked_div(b).unwrap_or(u64::MAX)),
    ("urem", |c, a, b| c.urem(a, b), |a, b, _| a.checked_rem(b).unwrap_or(a)),
    (
        "sdiv",
        |c, a, b| c.sdiv(a, b),
        |a, b, w| match (signed(a, w), signed(b, w)) {
            (a, 0) => (if a < 0 { 1 } else { -1_i64 }) as u64,
            (a, b) => (a / b) as u64,
        },
    ),
    (
        "srem",
        |c, a, b| c.srem(a, b),
        |a, b, w| match (signed(a, w), signed(b, w)) {
            (a, 0) => a as u64,
            (a, b) => (a % b) as u64,
        },
    ),
    (
        "shift left",
        |c, a, b| c.shift(ShiftKind::Left, a, b),
        |a, b, w| if b < u64::from(w) { a << b } else { 0 },
    ),
    (
        "logical shift right",
        |c, a, b| c.shift(ShiftKind::LogicalRight, a, b),
        |a, b, w| if b < u64::from(w) { a >> b } else { 0 },
    ),
    (
        "arithmetic shift right",
        |c, a, b| c.shift(ShiftKind::ArithmeticRight, a, b),
        |a, b, w| (signed(a, w) >> b.min(u64::from(w) - 1)) as u64,
    ),
    ("not", |_, a, _| a.not(), |a, _, _| !a),
    ("and", |c, a, b| c.bit_and(a, b), |a, b, _| a & b),
    ("or", |c, a, b| c.bit_or(a, b), |a, b, _| a | b),
    ("xor", |c, a, b| c.bit_xor(a, b), |a, b, _| a ^ b),
    ("table", |c, a, b| c.tabulate(a, b, |a, b| a ^ b).unwrap_or_else(|| c.bit_xor(a, b)), |a, b, _| a ^ b),
    ("equals", |c, a, b| one_bit(c.equals(a, b)), |a, b, _| u64::from(a == b)),
    ("less than", |c, a, b| one_bit(c.less_than(a, b)), |a, b, _| u64::from(a < b)),
    ("less or equal", |c, a, b| one_bit(c.less_or_equal(a, b)), |a, b, _| u64::from(a <= b)),
    (
        "signed less than",
        |c, a, b| one_bit(c.less_than_signed(a, b)),
        |a, b, w| u64::from(signed(a, w) < signed(b, w)),
    ),
    (
        "signed less or equal",
        |c, a, b| one_bit(c.less_or_equal_signed(a, b)),
        |a, b, w| u64::from(signed(a, w) <= signed(b, w)),
    ),
    (
        "select",
        |c, a, b| {
            let condition = c.less_than(a, b);
            c.select(condition, a, b)
        },
        |a, b, _| a.min(b),
    ),
    ("extend", |_, a, _| a.resize(2 * a.width()), |a, _, _| a),
    ("extend the sign", |_, a, _| a.resize_signed(2 * a.width()), |a, _, w| signed(a, w) as u64),
    ("truncate", |_, a, _| a.resize(3), |a, _, _| a),
    ("slice", |_, a, _| a.slice(1, 2), |a, _, _| a >> 1),
    ("concatenate", |_, a, b| a.slice(0, 2).concatenate(b), |a, b, _| a & 3 | b << 2),
];

/// Checks an operation for these operands: the solver finds the expected result, and no other.
fn check_operation(operation: usize, width: u32, by_cases: bool, pairs: impl Iterator<Item = (u64, u64)>) {
    let (name, build, expected) = OPERATIONS[operation];
    let tracker = BudgetTracker::new(Budget::UNLIMITED);
    let mut solver = CircuitSolver::new(&tracker);
    let mut inputs = [0; 2].map(|_| solver.circuit.variable(width as usize));
    if by_cases {
        inputs = inputs.map(|input| {
            let is_value = |value: u64| {
                let number = BitVector::constant(width as usize, value.into());
                (value, solver.circuit.equals(&input, &number))
            };
            let cases: Vec<(u64, Bit)> = (0..1 << width).map(is_value).collect();
            solver.circuit.from_cases(width as usize, cases).unwrap_or(input)
        });
        assert!(inputs.iter().all(|input| input.cases().is_some()));
    }
    let result = build(&mut solver.circuit, &inputs[0], &inputs[1]);
    for (a, b) in pairs {
        let numbers = [a, b].map(|value| match by_cases {
            true => BitVector::single_case(width as usize, value),
            false => BitVector::constant(width as usize, value.into()),
        });
        let mask = (1_u128 << result.width()) - 1;
        let expected = u128::from(expected(a, b, width)) & mask;
        let given: Vec<Bit> =
            (0..2).map(|index| solver.circuit.equals(&inputs[index], &numbers[index])).collect();
        assert_eq!(solver.solve(&given), Some(true), "{name} of {a} and {b} at {width} bits");
        assert_eq!(solver.assignment().number(&result), expected, "{name} of {a} and {b} at {width} bits");
        let is_expected = solver.circuit.equals(&result, &BitVector::constant(result.width(), expected));
        assert_eq!(solver.solve(&[given[0], given[1], !is_expected]), Some(false), "{name}: {a}, {b}");
        // Constants in each operand fold to the same result.
        assert_eq!(
            build(&mut solver.circuit, &numbers[0], &numbers[1]).to_constant(),
            Some(expected),
            "{name}"
        );
        for (first, second) in [(&inputs[0], &numbers[1]), (&numbers[0], &inputs[1])] {
            let half = build(&mut solver.circuit, first, second);
            let differs = !solver.circuit.equals(&half, &BitVector::constant(half.width(), expected));
            assert_eq!(solver.solve(&[given[0], given[1], differs]), Some(false), "{name}: {a}, {b}");
        }
    }
}

#[test]
fn operations_of_4_bits_equal_plain_arithmetic_for_all_operands() {
    for operation in 0..OPERATIONS.len() {
        for by_cases in [false, true] {
            check_operation(operation, 4, by_cases, (0..16).flat_map(|a| (0..16).map(move |b| (a, b))));
        }
    }
}

#[test]
fn operations_of_32_bits_equal_plain_arithmetic_for_random_operands() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(32);
    for operation in 0..OPERATIONS.len() {
        let mut number = || match random.random_range(0..4) {
            0 => random.random_range(0..40),
            1 => u64::from(u32::MAX - random.random_range(0..4)),
            2 => 1 << random.random_range(0..32),
            _ => u64::from(random.next_u32()),
        };
        let pairs: Vec<(u64, u64)> = (0..8).map(|_| (number(), number())).collect();
        check_operation(operation, 32, false, pairs.into_iter());
    }
}

#[test]
fn gates_equal_their_truth_tables_and_share_nodes() {
    let mut circuit = Circuit::default();
    let [a, b, c] = [0; 3].map(|_| circuit.input());
    let gates = [
        (circuit.and(a, b), 0b1000_1000_u8),
        (circuit.or(a, !c), 0b1010_1111),
        (circuit.xor(b, !c), 0b1100_0011),
        (circuit.iff(a, b), 0b1001_1001),
        (circuit.implies(a, b), 0b1101_1101),
        (circuit.if_then_else(c, a, b), 0b1010_1100),
        (circuit.if_then_else(!c, !a, b), 0b1100_0101),
        (circuit.if_then_else(a, a, b), 0b1110_1110),
        (circuit.if_then_else(a, !b, b), 0b0110_0110),
        (circuit.if_then_else(a, b, !a), 0b1101_1101),
        (circuit.all(&[a, b, c]), 0b1000_0000),
        (circuit.any(&[a, b, c]), 0b1111_1110),
        (circuit.all(&[a, b, !a]), 0),
        (circuit.all(&[]), u8::MAX),
        (circuit.any(&[]), 0),
    ];
    let tracker = BudgetTracker::new(Budget::UNLIMITED);
    let mut solver = CircuitSolver::new(&tracker);
    let nodes = circuit.node_count();
    solver.circuit = circuit;
    for (index, (gate, table)) in gates.into_iter().enumerate() {
        for row in 0..8 {
            let given = [a, b, c].map(|bit| bit);
            let mut assumptions: Vec<Bit> = Vec::new();
            for (place, bit) in given.into_iter().enumerate() {
                assumptions.push(if row >> place & 1 == 1 { bit } else { !bit });
            }
            assumptions.push(gate);
            assert_eq!(solver.solve(&assumptions), Some(table >> row & 1 == 1), "gate {index}, row {row}");
        }
    }
    // The same gates, with operands in another order, are the same nodes.
    let circuit = &mut solver.circuit;
    assert_eq!(circuit.or(b, a), !circuit.and(!a, !b));
    assert_eq!(circuit.xor(!b, !a), circuit.xor(a, b));
    assert_eq!(circuit.all(&[c, b, a, b]), gates[10].0);
    assert_eq!(circuit.if_then_else(!c, b, a), gates[5].0);
    assert_eq!(circuit.node_count(), nodes);
}

#[test]
fn requirements_persist_and_assumptions_do_not() {
    let tracker = BudgetTracker::new(Budget::UNLIMITED);
    let mut solver = CircuitSolver::new(&tracker);
    let x = solver.circuit.variable(100);
    let limit = solver.circuit.less_than(&x, &BitVector::constant(100, 3));
    solver.require(limit);
    let mut found = Vec::new();
    // Each found number is excluded, until none is left.
    while solver.solve(&[]) == Some(true) {
        let number = solver.assignment().number(&x);
        found.push(number);
        let equal = solver.circuit.equals(&x, &BitVector::constant(100, number));
        assert!(solver.solve(&[!equal, limit]).is_some());
        solver.require(!equal);
    }
    found.sort_unstable();
    assert_eq!(found, [0, 1, 2]);
}

#[test]
fn a_budget_ends_a_hard_question() {
    let tracker = BudgetTracker::new(Budget::from_steps(20_000));
    let mut solver = CircuitSolver::new(&tracker);
    let [a, b] = [0; 2].map(|_| solver.circuit.variable(48));
    let (a, b) = (a.resize(96), b.resize(96));
    let product = solver.circuit.mul(&a, &b);
    // The product of two large primes.
    let product =
        solver.circuit.equals(&product, &BitVector::constant(96, 140_737_488_355_213 * 70_368_744_177_643));
    let one = BitVector::constant(96, 1);
    let factors = [&a, &b].map(|factor| solver.circuit.less_than(&one, factor));
    assert_eq!(solver.solve(&[product, factors[0], factors[1]]), None);
    assert!(solver.is_exhausted());
}
