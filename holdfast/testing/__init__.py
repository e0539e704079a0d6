"""For tests of programs that start runs: a server and a scripted endpoint of models in the test's
own process, without key or network.

    async def test_a_plan_is_approved():
        async with deployed() as deployment:
            run = await deployment.hf.start("Which rates changed?")
            assert (await run.report()).status == "complete"

Answers are scripted and say so; what a script can say stands in docs/models.md. With pytest:
`pytest_plugins = ["holdfast.testing.fixtures"]` gives the fixture `deployment`. What models really
answered is played again from a file: `deployed(cassette=PATH)`. Needs
`pip install 'holdfast[testing]'`.
"""

from holdfast.deployment import extras

if lacking := extras.lacking("testing"):
    raise ImportError(f"holdfast.testing {lacking}")

from holdfast.replaying.cassette import CassetteError
from holdfast.testing.deployment import Deployment, deployed

__all__ = ["CassetteError", "Deployment", "deployed"]
