"""JavaScript and TypeScript that does not do what it says, by oxlint."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from activities.code_review.lens import SYNTAX, Analyser, CommandLine, Grade, program, sifted, told

CONFIGURATION = Path(__file__).parents[1] / "rules" / "oxlint.json"
"""Which globals there may be. What rules there are, the table says."""

GRADES = {
    SYNTAX: Grade("critical", 85),
    # What throws as soon as it is reached, or is a name that nobody defines.
    "constructor-super": Grade("critical", 80),
    "no-class-assign": Grade("critical", 85),
    "no-const-assign": Grade("critical", 95),
    "no-import-assign": Grade("critical", 85),
    "no-invalid-regexp": Grade("critical", 85),
    "no-new-native-nonconstructor": Grade("critical", 95),
    "no-obj-calls": Grade("critical", 95),
    "no-this-before-super": Grade("critical", 90),
    "no-undef": Grade("critical", 80),
    "number-arg-out-of-range": Grade("critical", 90),
    "jsx-no-undef": Grade("critical", 85),
    # Conditions and comparisons that are always the same, or other than they look.
    "bad-array-method-on-arguments": Grade("warning", 85),
    "bad-char-at-comparison": Grade("warning", 90),
    "bad-comparison-sequence": Grade("warning", 90),
    "bad-min-max-func": Grade("warning", 90),
    "bad-object-literal-comparison": Grade("warning", 95),
    "const-comparisons": Grade("warning", 85),
    "for-direction": Grade("warning", 95),
    "no-compare-neg-zero": Grade("warning", 85),
    "no-cond-assign": Grade("warning", 85),
    "no-constant-binary-expression": Grade("warning", 85),
    "no-constant-condition": Grade("info", 60),
    "no-dupe-else-if": Grade("warning", 90),
    "no-duplicate-case": Grade("warning", 90),
    "no-negation-in-equality-check": Grade("warning", 85),
    "no-self-compare": Grade("info", 70),
    "no-unmodified-loop-condition": Grade("info", 60),
    "no-unsafe-negation": Grade("warning", 95),
    "use-isnan": Grade("warning", 95),
    "valid-typeof": Grade("warning", 95),
    # What is written and lost, or overwritten.
    "erasing-op": Grade("warning", 85),
    "getter-return": Grade("warning", 85),
    "misrefactored-assign-op": Grade("warning", 80),
    "missing-throw": Grade("warning", 90),
    "no-dupe-class-members": Grade("warning", 90),
    "no-dupe-keys": Grade("warning", 90),
    "no-duplicate-enum-values": Grade("info", 60),
    "no-ex-assign": Grade("warning", 80),
    "no-exports-assign": Grade("warning", 85),
    "no-func-assign": Grade("info", 60),
    "no-global-assign": Grade("warning", 85),
    "no-self-assign": Grade("warning", 80),
    "no-setter-return": Grade("warning", 80),
    "no-shadow-restricted-names": Grade("warning", 80),
    "no-unassigned-vars": Grade("info", 70),
    "no-unreachable": Grade("warning", 80),
    "no-unsafe-finally": Grade("warning", 85),
    "uninvoked-array-callback": Grade("warning", 90),
    "array-callback-return": Grade("info", 70),
    "no-unexpected-multiline": Grade("warning", 80),
    # Values that come out wrong.
    "bad-match-all-arg": Grade("warning", 90),
    "bad-replace-all-arg": Grade("warning", 90),
    "no-empty-character-class": Grade("warning", 85),
    "no-loss-of-precision": Grade("warning", 80),
    "no-misleading-character-class": Grade("warning", 80),
    "no-useless-backreference": Grade("warning", 85),
    "no-sparse-arrays": Grade("info", 75),
    "no-array-fill-with-reference-type": Grade("warning", 85),
    # Promises, fetching and events.
    "no-async-promise-executor": Grade("warning", 80),
    "no-await-in-promise-methods": Grade("warning", 80),
    "no-invalid-fetch-options": Grade("warning", 90),
    "no-invalid-remove-event-listener": Grade("warning", 90),
    "no-accessor-recursion": Grade("warning", 85),
    "no-unsafe-optional-chaining": Grade("warning", 85),
    "no-non-null-asserted-optional-chain": Grade("warning", 80),
    "no-misused-new": Grade("info", 60),
    # React.
    "jsx-no-duplicate-props": Grade("warning", 90),
    "no-danger-with-children": Grade("warning", 90),
    "no-direct-mutation-state": Grade("warning", 85),
    "void-dom-elements-no-children": Grade("warning", 85),
    "rules-of-hooks": Grade("warning", 75),
    # Code out of text, and what was left in by mistake.
    "no-debugger": Grade("warning", 95),
    "no-eval": Grade("warning", 80),
    "no-implied-eval": Grade("warning", 80),
}

SCOPES = {
    "oxc": {
        "bad-array-method-on-arguments", "bad-char-at-comparison", "bad-comparison-sequence",
        "bad-match-all-arg", "bad-min-max-func", "bad-object-literal-comparison",
        "bad-replace-all-arg", "const-comparisons", "erasing-op", "misrefactored-assign-op",
        "missing-throw", "number-arg-out-of-range", "uninvoked-array-callback",
    },
    "typescript": {
        "no-duplicate-enum-values", "no-misused-new", "no-non-null-asserted-optional-chain",
    },
    "unicorn": {
        "no-accessor-recursion", "no-array-fill-with-reference-type", "no-await-in-promise-methods",
        "no-invalid-fetch-options", "no-invalid-remove-event-listener",
        "no-negation-in-equality-check",
    },
    "react": {
        "jsx-no-duplicate-props", "jsx-no-undef", "no-danger-with-children",
        "no-direct-mutation-state", "rules-of-hooks", "void-dom-elements-no-children",
    },
    "node": {"no-exports-assign"},
}  # fmt: skip
"""The plugin of each rule; without one it is a rule of ESLint's own."""


def command(files: Sequence[str], honour: bool) -> CommandLine:
    """Oxlint over files, with our configuration alone, looking for none of the repository's."""
    del honour
    scopes = {rule: f"{scope}/{rule}" for scope, rules in SCOPES.items() for rule in rules}
    rules = [scopes.get(rule, rule) for rule in GRADES if rule != SYNTAX]
    return sifted(
        "oxlint", program("oxlint"), "-c", str(CONFIGURATION), "--disable-nested-config",
        "--no-ignore", "--threads=2", "--format=json",
        *(f"--deny={rule}" for rule in rules), "--", *files,
    )  # fmt: skip


ANALYSER = Analyser(
    name="javascript",
    looks_for="JavaScript or TypeScript files",
    grades=GRADES,
    languages=("JavaScript", "TypeScript", "Vue", "Svelte", "Astro"),
    by_ending=True,
    command=command,
    parse=told,
    program="oxlint",
    package="oxlint",
)
