//! The numeric room against native arithmetic, brute force, exact references and a card.

mod card;
