"""Texts that would run if the page made markup, an attribute, an address, a style or a template of them. Each sets window.broken."""
# SPDX-License-Identifier: MIT

__all__ = ["CORPUS", "SHORT"]

SHORT = ("<script>window.broken=1</script>", "<img src=x onerror=window.broken=1>", "\"><svg onload=window.broken=1>",
         "javascript:window.broken=1//", "'-window.broken=1-'", "</title><script>window.broken=1</script>",
         "<a href=javascript:window.broken=1>x", "{{constructor.constructor('window.broken=1')()}}", "%3Cscript%3Ewindow.broken=1%3C/script%3E",
         "<style>@import'javascript:window.broken=1'</style>", "<iframe srcdoc='<script>parent.broken=1</script>'>", "../../../etc/passwd?x#y")

CORPUS = (
    *SHORT,
    # Elements that load or run something by themselves.
    "<svg><script>window.broken=1</script></svg>", "<svg/onload=window.broken=1>", "<body onload=window.broken=1>", "<video src=x onerror=window.broken=1>",
    "<audio src=x onerror=window.broken=1>", "<video><source onerror=window.broken=1></video>", "<object data=javascript:window.broken=1>",
    "<embed src=javascript:window.broken=1>", "<iframe src=javascript:parent.broken=1>", "<iframe onload=window.broken=1>",
    "<input autofocus onfocus=window.broken=1>", "<select autofocus onfocus=window.broken=1>", "<textarea autofocus onfocus=window.broken=1>",
    "<details open ontoggle=window.broken=1>", "<marquee onstart=window.broken=1>", "<link rel=stylesheet href=javascript:window.broken=1>",
    "<meta http-equiv=refresh content=0;url=javascript:window.broken=1>", "<base href=javascript:window.broken=1//>",
    "<form action=javascript:window.broken=1><button>x</button></form>", "<isindex action=javascript:window.broken=1 type=image>",
    "<style>*{animation:x}@keyframes x{}</style><b onanimationstart=window.broken=1>", "<math><a xlink:href=javascript:window.broken=1>x</a></math>",
    "<svg><animate onbegin=window.broken=1 attributeName=x dur=1s>", "<svg><set onbegin=window.broken=1 attributeName=x to=0>",
    "<svg><use href=\"data:image/svg+xml,<svg id='x' onload='window.broken=1'/>#x\">", "<svg><foreignObject><img src=x onerror=window.broken=1></foreignObject></svg>",
    "<template><img src=x onerror=window.broken=1></template>", "<xmp><img src=x onerror=window.broken=1>", "<noscript><p title=\"</noscript><img src=x onerror=window.broken=1>\">",
    # Ends of attributes, comments and other places that a text could be in.
    "\" onmouseover=window.broken=1 x=\"", "' onfocus=window.broken=1 autofocus x='", "` onload=window.broken=1 `", "--><script>window.broken=1</script>",
    "]]><script>window.broken=1</script>", "</textarea><script>window.broken=1</script>", "</style><script>window.broken=1</script>",
    "</script><script>window.broken=1</script>", "\\\"><script>window.broken=1</script>", "*/window.broken=1/*", "${window.broken=1}", "<%=window.broken=1%>",
    "{{$on.constructor('window.broken=1')()}}", "#{window.broken=1}", "[[window.broken=1]]", "\u2028window.broken=1\u2029",
    # Addresses, and bytes that some decoders fold into others.
    "JaVaScRiPt:window.broken=1", "java\u0001script:window.broken=1", "data:text/html,<script>parent.broken=1</script>", "vbscript:window.broken=1",
    "//evil.example/%2e%2e", "#/locks/<img src=x onerror=window.broken=1>", "__proto__", "constructor", "hasOwnProperty",
    "\uff1cscript\uff1ewindow.broken=1\uff1c/script\uff1e", "+ADw-script+AD4-window.broken=1+ADw-/script+AD4-", "<scr\u200bipt>window.broken=1</scr\u200bipt>",
    "&lt;img src=x onerror=window.broken=1&gt;", "&#60;script&#62;window.broken=1&#60;/script&#62;", "\u202e>1=nekorb.wodniw=rorreno gmi<",
    "url(javascript:window.broken=1)", "expression(window.broken=1)", "red;background:url(x)", "x:1}body{display:none}",
)
