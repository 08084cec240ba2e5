//! Integration tests of the rules, linked as one program.

mod validity;
