package cli

import (
	"flag"
	"regexp"
	"strings"
	"unicode/utf8"
)

// A HelpError is flag.ErrHelp with the flags that are to be explained.
type HelpError struct{ Flags *flag.FlagSet }

func (e *HelpError) Error() string { return flag.ErrHelp.Error() }

func (e *HelpError) Is(err error) bool { return err == flag.ErrHelp }

// named is a line of a help text in whose place flags are explained, such as {np g}.
var named = regexp.MustCompile(`(?m)^\{.*\}\n`)

// detail is a line that a brief help leaves out, or its mark.
var detail = regexp.MustCompile(`(?m)^\|(.*\n)`)

// Help returns text with its flags explained by their usages. A usage begins with the flag's argument in back quotes,
// if it takes one; a flag without a usage is hidden. A brief help has none of the lines that begin with |, and usages
// end at the first semicolon or sentence.
func (e *HelpError) Help(text string, brief bool) string {
	more := "$1"
	if brief {
		more = ""
	}
	text = detail.ReplaceAllString(text, more)
	return named.ReplaceAllStringFunc(text, func(line string) string {
		var b strings.Builder
		for _, name := range strings.Fields(strings.Trim(line, "{}\n")) {
			head, usage := "  -"+name, e.Flags.Lookup(name).Usage
			if rest, ok := strings.CutPrefix(usage, "`"); ok {
				argument, rest, _ := strings.Cut(rest, "` ")
				head, usage = head+" "+argument, rest
			}
			if brief {
				usage, _, _ = strings.Cut(usage, "; ")
				usage, _, _ = strings.Cut(usage, ". ")
			}
			explainFlag(&b, head, usage)
		}
		return b.String()
	})
}

// explainFlag writes a flag and its usage in two columns of a screen.
func explainFlag(b *strings.Builder, head, usage string) {
	const indent, width = 17, 80
	b.WriteString(head)
	at := utf8.RuneCountInString(head)
	if at+1 > indent {
		b.WriteByte('\n')
		at = 0
	}
	b.WriteString(strings.Repeat(" ", indent-at))
	at = indent
	for _, word := range strings.Fields(usage) {
		n := utf8.RuneCountInString(word)
		if at > indent && at+1+n > width {
			b.WriteString("\n" + strings.Repeat(" ", indent))
			at = indent
		} else if at > indent {
			b.WriteByte(' ')
			at++
		}
		b.WriteString(word)
		at += n
	}
	b.WriteByte('\n')
}
